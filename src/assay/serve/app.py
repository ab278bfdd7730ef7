"""The application, put together: the lab, the queue, the pages, and the guard in front of them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from http import HTTPStatus

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.responses import Response

import assay
from assay.lab import UserError

from .guard import Guard, refusal
from .journal import Journal
from .laboratory import Laboratory, NotHere
from .live import Hub
from .queue import Full, Queue
from .reports import Reports
from .routes import gemfilter, jobs, pages, runs, studies
from .settings import Settings


def create_app(settings: Settings) -> FastAPI:
    """The live lab as an ASGI application."""
    laboratory = Laboratory(settings.runs, settings.studies)
    hub, reports = Hub(), Reports(laboratory)

    def orphaned(run: str) -> None:
        with contextlib.suppress(UserError):  # somebody took the run away
            laboratory.mark_interrupted(run)

    queue = Queue(Journal(settings.runs / ".serve"), hub.tell, orphaned)

    @contextlib.asynccontextmanager
    async def life(app: FastAPI) -> AsyncIterator[None]:
        hub.open(asyncio.get_running_loop())
        queue.start()
        try:
            yield
        finally:
            hub.close()
            await asyncio.to_thread(queue.stop)
            reports.close()

    # The pages that FastAPI would offer for its schema come from another site.
    app = FastAPI(title="Assay, the live lab", version=assay.__version__, lifespan=life, docs_url=None, redoc_url=None)
    app.state.hub = hub
    app.state.warm = laboratory.warm
    app.include_router(studies.router(laboratory))
    app.include_router(jobs.router(laboratory, queue, hub))
    app.include_router(runs.router(laboratory, reports))
    app.include_router(gemfilter.router(laboratory, queue, settings.model, settings.indexes))
    app.include_router(pages.router(reports))
    _answer_errors(app)
    app.add_middleware(Guard, settings=settings)
    return app


def _answer_errors(app: FastAPI) -> None:
    """What cannot be done is one sentence, whatever went wrong."""

    @app.exception_handler(UserError)
    async def bad(request: Request, error: UserError) -> Response:
        return refusal(HTTPStatus.UNPROCESSABLE_ENTITY, str(error))

    @app.exception_handler(NotHere)
    async def absent(request: Request, error: NotHere) -> Response:
        return refusal(HTTPStatus.NOT_FOUND, str(error))

    @app.exception_handler(Full)
    async def full(request: Request, error: Full) -> Response:
        return refusal(HTTPStatus.TOO_MANY_REQUESTS, str(error))

    @app.exception_handler(RequestValidationError)
    async def malformed(request: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"][1:] or first["loc"])
        return refusal(HTTPStatus.UNPROCESSABLE_ENTITY, f"{where}: {first['msg']}")
