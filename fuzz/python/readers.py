"""Fuzzes the readers written in Python, which read plans, graphs and manifests of stores.

    python fuzz/python/readers.py plan|graphml|graph_json|manifest CORPUS -max_total_time=600

For any input bytes, a reader returns a value or raises one of celltrain's own errors. Any other exception ends the
fuzzer, which saves the input. Corpora start with shipped files: `make campaign NAME=fuzz`.
"""

import argparse
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent


def main() -> None:
    """Fuzzes one reader. Arguments after the corpus are passed to libFuzzer."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("reader", choices=sorted(READERS))
    arguments.add_argument("corpus", type=Path)
    chosen, others = arguments.parse_known_args()
    begin(chosen.reader, chosen.corpus)
    import atheris

    with atheris.instrument_imports(include=["celltrain"]):
        # Import the readers before fuzzing starts, because the fuzzer does not instrument modules imported later.
        import celltrain.ensemble.plan.reader
        import celltrain.ensemble.store
        import celltrain.model.graph  # noqa: F401
    with tempfile.TemporaryDirectory() as folder:
        atheris.Setup([sys.argv[0], *others, str(chosen.corpus)], one_input(chosen.reader, Path(folder)))
        atheris.Fuzz()


def one_input(reader: str, folder: Path) -> Callable[[bytes], None]:
    """Returns the function that passes one input of the fuzzer to a reader."""
    from celltrain.errors import CelltrainError

    read = READERS[reader]

    def take(data: bytes) -> None:
        try:
            read(data, folder)
        except CelltrainError:
            return

    return take


def begin(reader: str, corpus: Path) -> None:
    """Copies shipped files into a corpus, unless the corpus already has them."""
    corpus.mkdir(parents=True, exist_ok=True)
    for path in sorted(path for pattern in SEEDS[reader] for path in ROOT.glob(pattern)):
        target = corpus / path.name
        if not target.exists():
            shutil.copyfile(path, target)


def read_plan(data: bytes, folder: Path) -> None:
    """Reads a plan from a folder without other files."""
    from celltrain import Plan

    path = folder / "plan.toml"
    path.write_bytes(data)
    Plan.load(path)


def read_graphml(data: bytes, folder: Path) -> None:
    """Imports a graph in GraphML as a network with three random flows."""
    from celltrain.model.graph import import_graph

    path = folder / "graph.graphml"
    path.write_bytes(data)
    import_graph(path, flows=3, delay="1ms")


def read_graph_json(data: bytes, folder: Path) -> None:
    """Imports a graph in the node-link form of JSON as a network with three random flows."""
    from celltrain.model.graph import import_graph

    path = folder / "graph.json"
    path.write_bytes(data)
    import_graph(path, flows=3, delay="1ms")


def read_manifest(data: bytes, folder: Path) -> None:
    """Reads the manifest of a store that has no other content."""
    from celltrain import Store

    store = folder / "store"
    store.mkdir(exist_ok=True)
    (store / "manifest.json").write_bytes(data)
    Store.open(store, changed=True)


READERS: dict[str, Callable[[bytes, Path], None]] = {
    "plan": read_plan,
    "graphml": read_graphml,
    "graph_json": read_graph_json,
    "manifest": read_manifest,
}
SEEDS = {
    "plan": ["plans/*.toml"],
    "graphml": ["fuzz/python/seeds/*.graphml"],
    "graph_json": ["fuzz/python/seeds/graph.json"],
    "manifest": ["fuzz/python/seeds/manifest.json"],
}

if __name__ == "__main__":
    main()
