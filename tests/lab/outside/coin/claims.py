from .study import study


@study.claim("C1", "With a thousand tosses the share of heads is near the bias.", source="the law of large numbers")
def share(m):
    return (m.final("share", arm="tossed", setting="many") - m.params.bias).between(-0.05, 0.05)


@study.claim("N1", "Twenty tosses do not fix the share of heads to a thousandth.", source="control")
def few(m):
    return m.final("error", arm="tossed", setting="few").above(0.001)
