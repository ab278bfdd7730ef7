from .study import study


@study.claim("C1", "the share of heads is near the bias", source="the law of large numbers")
def share(m):
    return (m.final("share", arm="tossed", setting="many") - m.params.bias).between(-0.05, 0.05)


@study.claim("N1", "twenty tosses do not fix it to a thousandth in every seed", source="control")
def few(m):
    return m.final("error", arm="tossed", setting="few").above(0.001)
