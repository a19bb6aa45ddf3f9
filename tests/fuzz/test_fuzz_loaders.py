from fuzz.fuzz_loaders import LOADERS, corpus, read_whole, run_case


def test_damaged_files_are_read_or_refused_in_one_sentence(tmp_path):
    files = corpus(tmp_path)
    failures = {seed: run_case(tmp_path, files, seed) for seed in range(400)}
    assert {seed: failed for seed, failed in failures.items() if failed} == {}


def test_the_whole_files_are_read_by_some_loader(tmp_path):
    for number, (suffix, content) in enumerate(corpus(tmp_path)):
        path = tmp_path / f"{number}.{suffix}"
        path.write_bytes(content)
        n_read = 0
        for load in LOADERS.values():
            try:
                read_whole(load(path))
                n_read += 1
            except ValueError:
                continue
        assert n_read, path.name
