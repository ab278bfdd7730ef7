from .study import study

USUAL = {"arm": "drawn", "setting": "usual", "k": 1}


@study.claim("C1", "a <b>bold</b> claim & more", source="Theorem <1>", paper=0.98, headline=True)
def holds(m):
    return m.final("value", **USUAL).at_least(0.1)


@study.claim("C2", "too much is asked", source="Theorem 2", printed="for all n, without <any> condition", headline=True)
def fails(m):
    return m.final("value", **USUAL).above(0.9)


@study.claim("C3", "noise has a sign", source="Figure 3", paper="positive in ten of ten")
def undecided(m):
    return m.final("value", **USUAL).map(lambda value: float("nan"), "nothing").at_least(0)


@study.claim("C4", "the extra arm agrees", source="Section 4")
def absent(m):
    return m.final("value", arm="extra").at_least(0)


@study.claim("C5", "a small number is small in every seed", source="equation (5)")
def small(m):
    return m.every("tiny", **USUAL).at_most(1e-3)


@study.claim("N1", "half is between none and all", source="control")
def control(m):
    return m.final("value", **USUAL).between(0, 1)
