"""The service: models behind HTTP. This file is its contract: the settings, and the reasons to refuse a request."""

from dataclasses import dataclass, field

KEY_VARIABLE = "WINGSPAN_API_KEY"
"""The environment variable with the key that clients have to send."""


@dataclass(frozen=True)
class Settings:
    """What the service takes and how much of it; every limit ends in an answer of one sentence."""

    api_key: str | None = field(default=None, repr=False)
    allow_origins: tuple[str, ...] = ()  # pages of other sites that may ask; none by default
    body_limit: int = 4_000_000  # bytes of a request
    text_limit: int = 200_000  # characters of a text
    texts_limit: int = 2_000  # texts of a request
    time_limit: float = 60.0  # seconds until a request is given up
    queue: int = 256  # requests that wait or are computed; more are sent away with 429
    batch_tokens: int | None = None  # about how many tokens are predicted at once; None: by the device
    example: str | None = None  # a text that the page opens with; None: an empty field


class Refusal(Exception):
    """A request that gets no result, with its HTTP status and one sentence that says why and what to do."""

    def __init__(self, status: int, sentence: str, retry_after: int | None = None) -> None:
        super().__init__(sentence)
        self.status, self.sentence, self.retry_after = status, sentence, retry_after
