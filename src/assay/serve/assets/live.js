// Jobs as they are now, told by the server; every view that wants to know subscribes.

const jobs = new Map();
const listeners = new Set();
let source;

function changed(job) {
  for (const listener of [...listeners]) listener(job);
}

export function connect() {
  source = new EventSource("/api/events");
  source.addEventListener("jobs", (event) => {
    jobs.clear();
    for (const job of JSON.parse(event.data).reverse()) jobs.set(job.id, job);
    changed(null);
  });
  source.addEventListener("job", (event) => {
    const job = JSON.parse(event.data);
    jobs.set(job.id, job);
    changed(job);
  });
}

export const all = () => [...jobs.values()].reverse();
export const find = (id) => jobs.get(id);
export const over = (job) => !["waiting", "running"].includes(job.state);
export const drop = (id) => {
  jobs.delete(id);
  changed(null);
};
export const note = (job) => {
  const known = jobs.get(job.id);
  if (!known) jobs.set(job.id, job);
  changed(jobs.get(job.id));
};

// Returns a function that ends the subscription.
export function watch(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}
