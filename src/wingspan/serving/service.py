"""The routes: what clients ask and what they get. The models are the worker's, the limits the border's."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from importlib.resources import files
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args
from urllib.parse import quote

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.middleware.cors import CORSMiddleware
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException

from wingspan import __version__
from wingspan.answers import SHAPES, model_version
from wingspan.decoding import Overlap
from wingspan.serving import Refusal, Settings
from wingspan.serving.border import Border
from wingspan.serving.export import DOWNLOADS, download, known
from wingspan.serving.grid import span_grid
from wingspan.serving.label_studio import checked, interface_of, prediction, text_of
from wingspan.serving.metrics import Metrics, resident_bytes
from wingspan.serving.worker import Options, Worker, warmed
from wingspan.text import Document
from wingspan.views.entities import label_colors

if TYPE_CHECKING:
    from wingspan.recognizer import Recognizer

PAGE = {
    "/": ("text/html", ["serving/page.html"]),
    "/page.css": ("text/css", ["views/page.css", "views/document.css", "serving/page.css"]),
    "/page.js": ("text/javascript", ["views/theme.js", "serving/page.js"]),
}
"""The page: its paths, and the files that each is made of."""
LONGEST_GRID = 20_000  # characters of a text whose grid is asked for
Threshold = Annotated[float, Field(ge=0, le=1)]


class TextsRequest(BaseModel):
    """What every request may say; a key that is not known is an error, since it would change nothing."""

    model_config = ConfigDict(extra="forbid")
    model: str | None = Field(None, description="The name of a model; the first one without it.")


class EntitiesQuestion(TextsRequest):
    """The body of /v1/entities."""

    texts: list[str] = Field(description="The texts, of any length up to the service's limit.")
    threshold: Threshold | dict[str, Threshold] | None = Field(
        None, description="The least score, for all labels or by label; otherwise as the model was trained."
    )
    overlap: Overlap | None = Field(None, description="Which entities may overlap; otherwise as the model was trained.")
    dataset: str | None = Field(None, description="Of a model of several corpora, the one whose labels are used.")
    format: Literal["own", "hugging-face", "gliner", "spacy", "brat", "pubtator", "bioc"] = Field(
        "own", description="The shape of each document."
    )


class GridQuestion(TextsRequest):
    """The body of /v1/grid."""

    text: str
    at: int = Field(0, ge=0, description="A character of the sentence whose spans are asked for.")


class GivenEntity(BaseModel):
    """An entity as /v1/entities gives it; what else it has is not needed."""

    label: str
    start: int
    end: int
    score: float = 1.0
    fragments: list[tuple[int, int]] | None = None


class GivenDocument(BaseModel):
    """A document of a client."""

    id: str | None = None
    text: str
    entities: list[GivenEntity] = []


class ExportQuestion(TextsRequest):
    """The body of /v1/export."""

    documents: list[GivenDocument] = Field(min_length=1)
    format: str = Field(json_schema_extra={"enum": list(DOWNLOADS)})


class Setup(BaseModel):
    """The body of /setup, as Label Studio sends it; other keys are not needed."""

    label_schema: str | None = Field(None, alias="schema")


class Tasks(BaseModel):
    """The body of /predict, as Label Studio sends it; other keys are not needed."""

    tasks: list[dict[str, Any]]
    label_config: str | None = None


class Documents(BaseModel):
    """The answer of /v1/entities, one document for each text, in their order."""

    documents: list[dict[str, Any]]


class Problem(BaseModel):
    """Every answer that is no result."""

    error: str


ERRORS: dict[int | str, dict[str, Any]] = {
    400: {"model": Problem, "description": "not JSON"},
    401: {"model": Problem, "description": "the key is missing or wrong"},
    408: {"model": Problem, "description": "the body did not come in time"},
    413: {"model": Problem, "description": "too large"},
    422: {"model": Problem, "description": "not what this route takes"},
    429: {"model": Problem, "description": "too many requests are waiting; see Retry-After"},
    503: {"model": Problem, "description": "not done in time, or shutting down"},
}


def service(models: Mapping[str, "Recognizer"], settings: Settings = Settings()) -> FastAPI:  # noqa: B008 # frozen
    """The application, for uvicorn or any other ASGI server."""
    backend = Backend(models, settings)
    app = FastAPI(
        title="Wingspan",
        version=__version__,
        description="Named entities out of text, nested and discontinuous ones included.",
        docs_url=None,  # these pages load scripts from elsewhere
        redoc_url=None,
        lifespan=backend.lifespan,
        responses=ERRORS,
    )
    for add in (entity_routes, state_routes, label_studio_routes):
        add(app, backend)
    for path, (kind, parts) in PAGE.items():
        content = "\n".join(files("wingspan").joinpath(part).read_text(encoding="utf-8") for part in parts)
        app.add_api_route(path, always(Response(content, media_type=f"{kind}; charset=utf-8")), include_in_schema=False)
    answer_errors(app)
    routes = frozenset([*app.openapi()["paths"], *PAGE, "/openapi.json"])
    app.add_middleware(Border, settings=settings, metrics=backend.metrics, routes=routes)
    if settings.allow_origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=list(settings.allow_origins),
            allow_methods=["GET", "POST"],
            allow_headers=["authorization", "content-type", "x-api-key"],
            expose_headers=["retry-after", "wingspan-notes"],
        )
    return app


class Backend:
    """What the routes share: the worker with the models, what is known of these, the counts."""

    def __init__(self, models: Mapping[str, "Recognizer"], settings: Settings) -> None:
        self.worker, self.metrics, self.settings = Worker(models, settings), Metrics(), settings
        self.about = {name: description(name, recognizer) for name, recognizer in models.items()}
        self.default = next(iter(models))
        self.began = time.monotonic()

    @asynccontextmanager
    async def lifespan(self, _: FastAPI) -> AsyncIterator[None]:
        """From the first request to the last."""
        warmed(self.worker.models.values())
        self.worker.start()
        yield
        await asyncio.to_thread(self.worker.stop)

    def chosen(self, name: str | None) -> str:
        """The name of a model that there is."""
        if name is not None and name not in self.about:
            raise Refusal(422, f"there is no model of this name; use one of {', '.join(self.about)}")
        return name or self.default

    def measure(self, texts: list[str]) -> None:
        """Refuses texts over the limits."""
        most, longest = self.settings.texts_limit, self.settings.text_limit
        if len(texts) > most:
            raise Refusal(413, f"{len(texts):,} texts; send at most {most:,} at a time")
        for number, text in enumerate(texts):
            if not is_whole(text):
                raise Refusal(422, f"text {number} holds half of a surrogate pair; write the character whole")
            if len(text) > longest:
                raise Refusal(413, f"text {number} has {len(text):,} characters; send at most {longest:,}, in parts")

    async def predicted(self, request: Request, texts: list[str], options: Options) -> list[Document]:
        """The documents of texts, counted; nothing more is done for a client that has gone."""
        self.measure(texts)
        async with disconnection(request) as gone:
            documents: list[Document] = await self.worker.predict(texts, options, gone)
        self.metrics.texts[options.model] += len(texts)
        self.metrics.characters[options.model] += sum(map(len, texts))
        self.metrics.entities[options.model] += sum(len(document.entities) for document in documents)
        return documents


def entity_routes(app: FastAPI, backend: Backend) -> None:
    """Entities, grids, files."""

    @app.post("/v1/entities", response_model=Documents, tags=["entities"])
    async def entities(question: EntitiesQuestion, request: Request) -> Response:
        """Finds the entities of texts."""
        name = backend.chosen(question.model)
        threshold: Any = question.threshold
        threshold = tuple(sorted(threshold.items())) if isinstance(threshold, dict) else threshold
        options = Options(name, threshold, question.overlap, question.dataset)
        documents = await backend.predicted(request, question.texts, options)
        return plain({"documents": list(map(SHAPES[question.format], documents))})

    @app.post("/v1/grid", response_model=dict[str, Any], tags=["entities"])
    async def grid(question: GridQuestion, request: Request) -> Response:
        """The scores of all spans of one sentence, by start, width and label."""
        name, text = backend.chosen(question.model), question.text
        if len(text) > LONGEST_GRID:
            raise Refusal(413, f"{len(text):,} characters; send the paragraph alone, at most {LONGEST_GRID:,}")
        async with disconnection(request) as gone:
            cells = await backend.worker.run(name, lambda model: span_grid(model, text, question.at), text, gone)
        return plain(cells)

    @app.post("/v1/export", response_class=Response, tags=["entities"])
    async def export(question: ExportQuestion) -> Response:
        """Documents with entities as a file of any format; `Wingspan-Notes` says what the format does not keep."""
        version = backend.about[backend.chosen(question.model)]["version"]
        backend.measure([document.text for document in question.documents])
        rows = [document.model_dump(mode="json", exclude_none=True) for document in question.documents]
        try:
            file = await asyncio.to_thread(download, rows, known(question.format), version)
        except ValueError as error:  # a record that does not fit, or a format that cannot hold it
            raise Refusal(422, " ".join(str(error).split())) from None
        headers = {"content-disposition": f'attachment; filename="{file.name}"'}
        if file.notes:
            headers["wingspan-notes"] = quote(" ".join(f"{note}." for note in file.notes))
        return Response(file.content, media_type="application/octet-stream", headers=headers)


def state_routes(app: FastAPI, backend: Backend) -> None:
    """What there is, and how it is."""

    @app.get("/v1/models", response_model=dict[str, Any], tags=["service"])
    async def list_models() -> Response:
        """The models, with their labels, and what the service takes."""
        colors = label_colors(label for model in backend.about.values() for label in model["labels"])
        limits = {
            "text": backend.settings.text_limit,
            "texts": backend.settings.texts_limit,
            "body": backend.settings.body_limit,
        }
        formats = {"formats": list(SHAPES), "downloads": list(DOWNLOADS), "example": backend.settings.example}
        return plain({"models": list(backend.about.values()), "colors": colors, "limits": limits, **formats})

    @app.get("/health", response_model=dict[str, Any], tags=["service"])
    async def health() -> Response:
        """Whether the service lives. Label Studio asks too."""
        alive = backend.worker.alive
        status = {"status": "UP" if alive else "DOWN", "version": __version__, "models": list(backend.about)}
        return plain(status, 200 if alive else 503)

    @app.get("/ready", response_model=dict[str, Any], tags=["service"])
    async def ready() -> Response:
        """Whether it takes requests now."""
        free = backend.worker.alive and backend.worker.waiting < backend.settings.queue
        return plain({"ready": free, "waiting": backend.worker.waiting}, 200 if free else 503)

    @app.get("/metrics", response_class=Response, tags=["service"])
    async def prometheus() -> Response:
        """Counts and times for Prometheus."""
        gauges = {
            "queue_requests": ("Requests that wait.", backend.worker.waiting),
            "rounds": ("Rounds of prediction since the start.", backend.worker.rounds),
            "tokens": ("Tokens predicted since the start, estimated.", backend.worker.tokens),
            "tokens_per_second": ("The rate of the last rounds.", backend.worker.rate or 0.0),
            "resident_memory_bytes": ("Memory of this process.", resident_bytes()),
            "up_seconds": ("Time since the start.", time.monotonic() - backend.began),
        }
        return Response(backend.metrics.text(gauges), media_type="text/plain; version=0.0.4")


def label_studio_routes(app: FastAPI, backend: Backend) -> None:
    """Label Studio's protocol, with the first model."""
    about = backend.about[backend.default]

    @app.post("/setup", response_model=dict[str, Any], tags=["Label Studio"])
    async def setup(question: Setup) -> Response:
        """Connects a project of Label Studio."""
        checked(interface_of(question.label_schema or ""), about["labels"])
        return plain({"model_version": about["version"]})

    @app.post("/predict", response_model=dict[str, Any], tags=["Label Studio"])
    async def predict(question: Tasks, request: Request) -> Response:
        """Suggestions for tasks of Label Studio, with scores."""
        interface = checked(interface_of(question.label_config or ""), about["labels"])
        texts = [text_of(task, interface) for task in question.tasks]
        version = about["version"]
        documents = await backend.predicted(request, texts, Options(backend.default))
        results = [prediction(document, interface, version) for document in documents]
        return plain({"results": results, "model_version": version})

    @app.get("/versions", response_model=dict[str, Any], tags=["Label Studio"])
    async def versions() -> Response:
        """The versions of the model: the one that is served."""
        return plain({"versions": [about["version"]]})

    @app.post("/train", response_model=Problem, status_code=404, tags=["Label Studio"])
    async def train() -> Response:
        """Not here."""
        raise Refusal(404, "nothing is trained here; export the annotations and run `wingspan train`, then serve again")

    @app.post("/webhook", response_model=dict[str, Any], tags=["Label Studio"])
    async def webhook() -> Response:
        """Takes note of nothing: Label Studio tells every backend of every annotation."""
        return plain({"status": "ignored"})


def answer_errors(app: FastAPI) -> None:
    """Every error is an answer of one sentence."""

    @app.exception_handler(Refusal)
    async def refused(_: Request, refusal: Refusal) -> Response:
        headers = {} if refusal.retry_after is None else {"retry-after": str(refusal.retry_after)}
        return plain({"error": refusal.sentence}, refusal.status, headers)

    @app.exception_handler(RequestValidationError)
    async def not_understood(_: Request, error: RequestValidationError) -> Response:
        return plain({"error": sentence_of(error)}, 400 if is_no_json(error) else 422)

    @app.exception_handler(HTTPException)
    async def other(_: Request, error: HTTPException) -> Response:
        sentences = {400: "the body is no JSON; send an object", 405: "this route takes another method"}
        return plain(
            {"error": sentences.get(error.status_code, error.detail)}, error.status_code, dict(error.headers or {})
        )


def always(answer: Response) -> Callable[[], Awaitable[Response]]:
    """A route with one answer."""

    async def route() -> Response:
        return answer

    return route


def plain(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """An answer in JSON."""
    body = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
    # a name that a client made up may be no text
    return Response(body.encode("utf-8", "replace"), status, dict(headers or {}), "application/json")


def is_whole(text: str) -> bool:
    """Whether a text can be written: JSON may hold half of a character."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


@asynccontextmanager
async def disconnection(request: Request) -> AsyncIterator["asyncio.Future[Any]"]:
    """Is done when the client goes away; the body has been read, so nothing else can come."""

    async def disconnected() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    task = asyncio.ensure_future(disconnected())
    try:
        yield task
    finally:
        task.cancel()


def description(name: str, recognizer: "Recognizer") -> dict[str, Any]:
    """What clients may know of a model."""
    labels = recognizer.labels
    facts = {"version": model_version(recognizer.recipe.name, recognizer.facts), "recipe": recognizer.recipe.name}
    own = {"overlap": recognizer.recipe.overlap, "overlaps": list(get_args(Overlap))}
    corpora = {"datasets": list(labels.types)} if len(labels.types) > 1 else {}
    return {"name": name, "labels": list(labels.types[labels.target]), **facts, **own, **corpora}


def is_no_json(error: RequestValidationError) -> bool:
    """Whether the body could not even be parsed."""
    return any(row["type"] == "json_invalid" for row in error.errors())


def sentence_of(error: RequestValidationError) -> str:
    """The first problem in one sentence, without what was sent."""
    row = error.errors()[0]
    if is_no_json(error):
        return "the body is no JSON; send an object"
    place = ".".join(str(part) for part in row["loc"][1:] if part not in ("float", "dict", "constrained-float"))
    message = str(row["msg"])
    if row["type"] == "extra_forbidden":
        return "the body has a key that this route does not know; /openapi.json lists its keys"
    if row["type"] == "missing":
        return f"{place or 'the body'} is missing; send a JSON object with content-type application/json"
    return f"{place or 'the body'}: {message[:1].lower()}{message[1:]}"[:300]
