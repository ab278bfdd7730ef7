from .study import study


@study.claim("C1", "The points settle at a height of 0.4 <or> more.", source="Theorem 1", headline=True)
def high(m):
    return m.final("height", arm="walk", k=0).at_least(0.4)


@study.claim("C2", "All points arrive at their goal.", source="Theorem 2", headline=True)
def arrive(m):
    return m.final("nearness", arm="neurons").at_least(0.99)


@study.claim("N1", "No point is above one.", source="control")
def below(m):
    return m.final("height", arm="walk", k=0).at_most(1)
