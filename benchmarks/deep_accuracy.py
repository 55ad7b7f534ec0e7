"""Does depth help? Zhu et al. 2023 on GENIA and LitBank with e5-small: shallow, biaffine, deep 2 and 12.

python benchmarks/deep_accuracy.py --data $WINGSPAN_DATA --seeds 1,2,3 --workers 16 \
    --output benchmarks/results/deep_accuracy.jsonl --predictions runs/deep
python benchmarks/deep_accuracy.py --data $WINGSPAN_DATA --plan ablations --corpora genia \
    --output benchmarks/results/deep_ablations.jsonl

The same head, epochs and steps for all; the grid is 10 words wide on GENIA (0.06 % of its entities are wider), 64 on
LitBank.
"""

from __future__ import annotations

from training_runs import Job, Row, arguments, choices, run_jobs, train

EXHAUSTIVE = ("no-bilstm", "depth-2-no-bilstm", "biaffine", "shallow-max-no-bilstm")
PROPOSALS = ("proposals", "depth-2-proposals", "biaffine-proposals", "shallow-max-proposals")
# with the paper's BiLSTM over neighbors, the slowest first
ABLATIONS = (
    *("depth-12", "share-weights", "no-smoothing", "init-mean", "init-multiplicative", "init-additive"),
    *("depth-6", "depth-2", "shallow-max", "shallow-mean", "shallow-multiplicative", "shallow-additive"),
)
BUDGETS = (0.5, 1.0, 2.0)
SHARED = {"overlap": "nested", "train.batch_size": "48", "train.budget": "1600", "encoder.word_dropout": "0.15"}
CORPORA: dict[str, dict[str, str]] = {
    "genia": {**SHARED, "train.epochs": "6", "train.precision": "bf16"},
    "litbank": {**SHARED, "train.epochs": "8"},
}
WIDTHS = {"genia": "10", "litbank": "64"}
BUDGET = {"genia": "1", "litbank": "2"}


def settings(corpus: str, system: str, choice: dict[str, str]) -> dict[str, str]:
    """The settings of a run. A wide grid of deep spans is recomputed in the backward pass to fit into memory."""
    chosen = {**CORPORA[corpus], **choice}
    if system in PROPOSALS:
        return {**chosen, "candidates.budget": BUDGET[corpus]}
    again = {"spans.checkpointing": "true"} if system == "no-bilstm" else {}
    return {**chosen, "max_width": WIDTHS[corpus], **again}


def work(job: Job) -> Row:
    """A training; with proposals also their recall, and the dev score at other budgets."""
    from wingspan.evaluation.scores import recognition
    from wingspan.training.finish import candidate_policy, proposal_recall, proposes

    row, model, parts = train(job)
    if proposes(model):
        row["proposals"] = {
            part: [proposal_recall(model, parts[part], budget, batch_size=64) for budget in BUDGETS]
            for part in (("dev",) if job["dev_only"] else ("dev", "test"))
        }
        policy = candidate_policy(model)
        row["budgets"] = []
        for budget in BUDGETS:
            policy.budget = budget
            scores = recognition(parts["dev"], model.predict(parts["dev"], batch_size=64))
            row["budgets"].append({"budget": budget, "dev_f1": scores.micro.f1})
    return row


def main() -> None:
    """Runs what is missing, the slowest first."""
    parser = arguments(__doc__)
    parser.add_argument("--encoder", default="e5-small")
    parser.add_argument("--corpora", default="genia,litbank")
    parser.add_argument("--plan", choices=("core", "ablations"), default="core")
    parser.add_argument("--systems", help="variants of deep_span by commas, instead of a plan's")
    given = parser.parse_args()
    planned = ABLATIONS if given.plan == "ablations" else (*EXHAUSTIVE, *PROPOSALS)
    systems = given.systems.split(",") if given.systems else planned
    jobs: list[Job] = [
        {
            "corpus": corpus,
            "recipe": f"deep_span/{system}",
            "seed": int(seed),
            "encoder": given.encoder,
            "settings": settings(corpus, system, choice),
        }
        for choice in choices(given.set)
        for system in sorted(systems, key=lambda name: not name.startswith(("no-bilstm", "proposals")))
        for corpus in given.corpora.split(",")
        for seed in given.seeds.split(",")
    ]
    run_jobs(given, jobs, work)


if __name__ == "__main__":
    main()
