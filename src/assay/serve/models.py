"""What requests look like: the shape is checked here, the values of parameters by the study's own schema."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

Word = Annotated[str, StringConstraints(min_length=1, max_length=80)]
Scalar = bool | int | float | Annotated[str, StringConstraints(max_length=2000)] | None
Scalars = Annotated[list[Scalar], Field(max_length=200)]
Value = Scalar | Annotated[list[Scalar | Scalars], Field(max_length=200)]


class Request(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Asked(Request):
    """A run as a person asks for it, in the words of ``lab.run``."""

    study: Word
    preset: Literal["smoke", "laptop", "paper"] = "smoke"
    seeds: int | None = Field(None, ge=1, le=1000, description="how many; the preset's own number by default")
    first_seed: int = Field(0, ge=0, le=10**9)
    set: dict[Word, Value] = Field({}, max_length=200, description="parameters that differ from the preset's")
    arms: list[Word] | None = Field(None, max_length=200, description="all that the preset runs by default")
    device: Literal["cpu", "cuda", "auto"] = "cpu"

    def request(self) -> dict[str, Any]:
        """As ``lab.run`` and ``lab.plan`` take it."""
        given = self.model_dump(exclude={"study", "name"})
        return {**given, "arms": ",".join(self.arms) if self.arms else None}


class Start(Asked):
    name: Annotated[str, StringConstraints(max_length=80)] = Field("", description="a name to find the run by")


class Question(Request):
    """A text, or one of the indexes that the server lists, and what is asked about it."""

    text: Annotated[str, StringConstraints(max_length=500_000)] = ""
    index: Annotated[str, StringConstraints(max_length=255)] = Field("", description="the name of a listed index")
    question: Annotated[str, StringConstraints(max_length=2000)] = ""
    keep: int = Field(128, ge=8, le=8192, description="tokens that stay")
    layer: int | None = Field(None, ge=0, le=500, description="the filter layer; the model's middle one by default")
    rule: Literal["logits", "softmax", "window"] = "window"
    new: int = Field(40, ge=1, le=400, description="tokens of the answer at most")


class Name(Request):
    name: Annotated[str, StringConstraints(max_length=80)] = ""
