"""Tables of items: .jsonl, .parquet or a folder of pictures, and nothing outside of the folder."""

import json
import os
import tracemalloc

import httpx
import numpy as np
import pytest

from rankbits.errors import FileFormatError, InputError
from rankbits.index import Collection
from rankbits.service import create_app
from rankbits.service._images import Images, media_type
from rankbits.service._items import load_items
from rankbits.service._limits import Limits
from rankbits.service._problems import RequestProblem
from service.conftest import running
from service.problems import assert_problem, post

ROWS = [
    {"id": 5, "label": "cat", "text": "a cat", "price": 1.5, "tags": ["x", None]},
    {"id": 2, "label": "dog", "text": "a dog", "price": None, "tags": []},
    {"id": 9, "label": "cat", "text": "another", "price": float("nan"), "tags": None},
]


@pytest.fixture(params=["jsonl", "parquet"])
def table(request, tmp_path):
    path = tmp_path / f"items.{request.param}"
    if request.param == "jsonl":
        path.write_text("\n".join(json.dumps(row) for row in ROWS) + "\n")
    else:
        arrow = pytest.importorskip("pyarrow")
        parquet = pytest.importorskip("pyarrow.parquet")
        parquet.write_table(arrow.Table.from_pylist(ROWS), path, row_group_size=2)
    return path


def test_fields_are_found_by_id(table):
    items = load_items(table, None)
    assert len(items) == 3
    assert items.fields(5) == {"label": "cat", "text": "a cat", "price": 1.5, "tags": ["x", None]}
    assert items.fields(9)["text"] == "another"
    assert items.fields(9)["price"] is None
    for unknown in (0, 3, 10, 2**62):
        assert items.fields(unknown) == {}
    assert items.labels == [("cat", 2), ("dog", 1)]
    assert items.labelled(["cat"]).tolist() == [5, 9]
    assert items.labelled(["cat", "dog"]).tolist() == [2, 5, 9]
    with pytest.raises(InputError, match="'bird' is not"):
        items.labelled(["bird"])


def test_without_ids_row_i_is_item_i(tmp_path):
    (tmp_path / "i.jsonl").write_text('{"text": "zero"}\n\n{"text": "one"}\n')
    items = load_items(tmp_path / "i.jsonl", None)
    assert [items.fields(i) for i in range(3)] == [{"text": "zero"}, {"text": "one"}, {}]
    with pytest.raises(InputError, match="column label"):
        items.labelled(["x"])


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("i.jsonl", b'{"id": 1}\n{"id": 1}', "each id once"),
        ("i.jsonl", b'{"id": "a"}', "whole numbers"),
        ("i.jsonl", b'{"id": -1}', "whole numbers"),
        ("i.jsonl", b"[1]", "JSON object"),
        ("i.jsonl", b"{", "readable"),
        ("i.jsonl", b"\xff\xfe", "readable"),
        ("i.parquet", b"PAR1", "readable"),
        ("i.csv", b"id\n1", ".parquet or .jsonl"),
    ],
)
def test_a_table_that_cannot_be_read_is_one_sentence(tmp_path, name, content, words):
    (tmp_path / name).write_bytes(content)
    with pytest.raises((FileFormatError, InputError), match=words):
        load_items(tmp_path / name, None)
    with pytest.raises(InputError):
        load_items(tmp_path / "missing.jsonl", None)


def png(color, size=(6, 4)):
    import io

    from PIL import Image

    out = io.BytesIO()
    Image.new("RGB", size, color).save(out, "PNG")
    return out.getvalue()


@pytest.fixture
def pictures(tmp_path):
    """A folder of classes, and beside it a secret."""
    pytest.importorskip("PIL")
    for name, color in (("cats/a.png", "red"), ("cats/b.png", "green"), ("dogs/c.png", "blue")):
        path = tmp_path / "pictures" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(png(color))
    (tmp_path / "secret.png").write_bytes(png("black"))
    return tmp_path / "pictures"


@pytest.fixture
def place(tmp_path):
    with Collection.create(tmp_path / "c", 8) as collection:
        collection.add(np.arange(8, dtype=np.uint8)[:, None])
    return tmp_path / "c"


def test_a_folder_of_pictures_is_a_table_by_itself(place, pictures):
    with running(create_app(place, images=pictures)) as url:
        stats = httpx.get(url + "/stats").json()
        expected = [{"label": "cats", "items": 2}, {"label": "dogs", "items": 1}]
        assert stats["labels"] == expected
        item = httpx.get(url + "/items/2").json()
        assert item["fields"] == {"file": "dogs/c.png", "label": "dogs"}
        answer = httpx.get(url + item["image"])
        assert answer.content == png("blue")
        assert answer.headers["content-type"] == "image/png"
        assert_problem(httpx.get(url + "/items/5/image"), 404)
        found = post(url, "/search", {"ids": [7], "labels": ["cats"]}).json()
        assert found["ids"] == [[1, 0]]


def test_no_name_in_a_table_leads_out_of_the_folder(place, pictures, tmp_path):
    (pictures / "link.png").symlink_to(tmp_path / "secret.png")
    (pictures / "page.png").write_text("<html><script>alert(1)</script>")
    names = [
        "../secret.png",
        str(tmp_path / "secret.png"),
        "link.png",
        "cats/../../secret.png",
        "page.png",
        "cats/../cats/a.png",
        "data:image/png;base64,AAAA",
        "\0",
    ]
    rows = [json.dumps({"image": name}) for name in names]
    (tmp_path / "items.jsonl").write_text("\n".join(rows))
    with running(create_app(place, items=tmp_path / "items.jsonl", images=pictures)) as url:
        answers = [httpx.get(f"{url}/items/{item}/image") for item in range(len(names))]
    assert [answer.status_code for answer in answers] == [404] * 5 + [200, 404, 404]
    assert answers[5].content == png("red")


def test_bytes_of_a_table_are_pictures_too(place, tmp_path):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    pytest.importorskip("PIL")
    images = [{"bytes": png("red"), "path": "x.png"}, {"bytes": None, "path": None}]
    table = arrow.table({"image": images, "blob": [b"\0", b"\1"]})
    parquet.write_table(table, tmp_path / "i.parquet")
    with running(create_app(place, items=tmp_path / "i.parquet")) as url:
        assert httpx.get(url + "/items/0/image").content == png("red")
        assert httpx.get(url + "/items/0").json()["fields"] == {}
        assert_problem(httpx.get(url + "/items/1/image"), 404)


def test_a_large_picture_is_made_small_on_request(place, tmp_path):
    pil = pytest.importorskip("PIL.Image")
    import io

    folder = tmp_path / "large"
    folder.mkdir()
    noise = np.random.default_rng(0).integers(0, 256, (600, 900, 3), np.uint8)
    pil.fromarray(noise).save(folder / "a.png")
    with running(create_app(place, images=folder)) as url:
        small = httpx.get(url + "/items/0/image?size=160")
        assert small.headers["content-type"] == "image/jpeg"
        assert pil.open(io.BytesIO(small.content)).size == (160, 107)
        assert httpx.get(url + "/items/0/image").content == (folder / "a.png").read_bytes()
        assert_problem(httpx.get(url + "/items/0/image?size=9999"), 422)


def noise(kind="PNG", size=(300, 300)):
    import io

    from PIL import Image

    out = io.BytesIO()
    pixels = np.random.default_rng(0).integers(0, 256, (*size, 3), np.uint8)
    Image.fromarray(pixels).save(out, kind)
    return out.getvalue()


@pytest.fixture
def images(tmp_path):
    """Pictures of a folder: three that are sound, one that is damaged, one that is huge."""
    pytest.importorskip("PIL")
    folder = tmp_path / "noise"
    folder.mkdir()
    for name in "abc":
        (folder / f"{name}.png").write_bytes(noise())
    (folder / "d.png").write_bytes(noise()[:50_000])
    (folder / "e.png").write_bytes(noise(size=(500, 500)))
    return Images(load_items(None, folder), folder, Limits(pixels=200_000))


def cached(images):
    return list(images._small._pictures), sum(len(p) for p, _ in images._small._pictures.values())


def test_no_more_small_pictures_are_remembered_than_fit(images):
    n_bytes = len(images.get(0, 64)[0])
    images._small = type(images._small)(2 * n_bytes + n_bytes // 2)
    for item in (0, 1, 0, 2):
        assert len(images.get(item, 64)[0]) == n_bytes
    assert cached(images) == ([(0, 64), (2, 64)], 2 * n_bytes)


def test_pictures_as_they_are_and_damaged_ones_are_not_remembered(images, monkeypatch):
    assert images.get(0, None)[0] == noise()
    assert images.get(3, 64)[0] == noise()[:50_000]
    monkeypatch.setattr("rankbits.service._images._has_pillow", lambda: False)
    assert images.get(1, 64)[0] == noise()
    assert cached(images) == ([], 0)


def test_a_huge_picture_is_not_decoded_to_make_it_small(images, monkeypatch):
    with pytest.raises(RequestProblem, match="more than 200000 pixels"):
        images.get(4, 64)
    assert images.get(4, None)[0] == noise(size=(500, 500))


def test_one_long_label_costs_its_own_length(tmp_path):
    labels = ["x" * 50_000, *(str(number % 7) for number in range(2000))]
    (tmp_path / "i.jsonl").write_text("\n".join(json.dumps({"label": one}) for one in labels))
    tracemalloc.start()
    items = load_items(tmp_path / "i.jsonl", None)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert items.labelled(["x" * 50_000]).tolist() == [0]
    assert items.labelled(["3"]).tolist() == list(range(4, 2001, 7))
    assert peak < 4_000_000  # as texts of one width they would be 400 MB


def test_items_are_listed_page_by_page(place, tmp_path):
    rows = [json.dumps({"label": "even" if i % 2 == 0 else "odd"}) for i in range(8)]
    (tmp_path / "i.jsonl").write_text("\n".join(rows))
    with running(create_app(place, items=tmp_path / "i.jsonl")) as url:
        after, seen = -1, []
        while after is not None:
            page = httpx.get(f"{url}/items?limit=3&after={after}").json()
            seen += [item["id"] for item in page["items"]]
            after = page["next"]
        assert seen == list(range(8))
        page = httpx.get(url + "/items?label=odd&limit=2&after=1").json()
        assert [item["id"] for item in page["items"]] == [3, 5]
        for query in ("limit=0", "limit=101", "after=x", "label=none"):
            assert_problem(httpx.get(f"{url}/items?{query}"), 422)
        with Collection.open(place, writable=True) as writer:
            writer.remove([3])
        page = httpx.get(url + "/items?label=odd&limit=2&after=1").json()
        assert [item["id"] for item in page["items"]] == [5, 7]


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"\x89PNG\r\n\x1a\n", "image/png"),
        (b"\xff\xd8\xff\xe0", "image/jpeg"),
        (b"GIF89a", "image/gif"),
        (b"RIFF0000WEBPVP8", "image/webp"),
        (b"<svg onload=alert(1)>", None),
        (b"", None),
    ],
)
def test_only_pictures_that_run_nothing_are_sent(data, kind):
    assert media_type(data) == kind


def test_a_table_that_is_cut_or_changed_while_it_is_served_is_refused(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "items.parquet"
    table = pyarrow.table({"text": [f"{number:04}" * 500 for number in range(4000)]})
    parquet.write_table(table, path, row_group_size=500, compression="none", use_dictionary=False)
    raw = path.read_bytes()
    items = load_items(path, None)
    assert items.fields(7)["text"].startswith("0007")

    path.write_bytes(raw.replace(b"0600" * 500, b"9999" * 500))
    os.utime(path, (1e9, 1e9))
    with pytest.raises(FileFormatError, match=r"items\.parquet was changed while it was served"):
        items.fields(600)
    os.truncate(path, 100)
    with pytest.raises(FileFormatError, match=r"items\.parquet"):
        items.fields(1100)
    assert items.fields(7)["text"].startswith("0007")  # it is in memory
