"""The demo: what it replaces. `make demo` itself takes minutes."""

from modeling_triaffine import demo


def test_another_run_replaces_corpus_and_model_and_nothing_else(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(demo, "run_command", lambda arguments: demo.MODEL.mkdir())
    for _ in range(2):
        demo.train()
        (demo.MODEL.parent / "report").mkdir(exist_ok=True)
    names = [path.relative_to("outputs/demo").as_posix() for path in sorted(demo.MODEL.parent.rglob("*"))]
    splits = [f"corpus/{split}.jsonl" for split in ("test", "train", "validation")]
    assert names == ["corpus", *splits, "model", "report"]
