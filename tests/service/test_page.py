"""The page in a real browser: every function, at two widths, by mouse and by keyboard alone."""

import base64
import io
import json
import re

import numpy as np
import pytest

from rankbits import methods
from rankbits.index import Collection
from rankbits.service import create_app
from service.browser import Visit, accessibility_violations, chromium
from service.conftest import running

WIDTHS = ["desktop", "phone"]


@pytest.fixture(scope="module")
def browser():
    with chromium() as launched:
        yield launched


@pytest.fixture(scope="module")
def url(folder):
    """A server that takes items, vectors, codes, and texts: a text is the mean of its digits."""
    x, y = folder.data.database_x, folder.data.database_y
    means = np.array([x[y == digit].mean(axis=0) for digit in range(10)])

    def encode(texts):
        digits = [[int(one) for one in re.findall(r"\d", text)] for text in texts]
        return np.array(
            [means[some].mean(axis=0) if some else means.mean(axis=0) for some in digits]
        )

    app = create_app(folder.path / "collection", **folder.settings, text_encoder=encode)
    with running(app) as address:
        yield address


@pytest.fixture(scope="module")
def collection(folder):
    with Collection.open(folder.path / "collection") as opened:
        yield opened


def nearest(collection, codes, k=10, **settings):
    return collection.search(codes, k, **settings)[1][0].tolist()


@pytest.mark.parametrize("size", WIDTHS)
def test_it_opens_with_a_search_and_shows_ties_as_ties(browser, url, folder, collection, size):
    with Visit(browser, url, size=size) as visit:
        assert visit.ids() == nearest(collection, folder.codes[:1])
        assert visit.text("#facts") == "1,500 items, 32 bits, itq"
        assert re.match(
            r"10 results at 2 distances\. The search took [\d.]+ ms", visit.text("#status")
        )
        counts = collection.tie_counts(folder.codes[:1])[0]
        shown = 10 - counts[0]
        assert visit.headings() == [
            f"The same code {counts[0]} items tie at distance 0: their order means nothing.",
            f"1 bit of 32 differs {counts[1]} items tie at distance 1: their order means nothing. "
            f"{shown} of them are shown.",
        ]
        overflow = (
            "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )
        assert visit.page.evaluate(overflow) == 0
        visit.screenshot(f"serve_{size}", at="#results" if size == "phone" else "body")


@pytest.mark.parametrize("size", WIDTHS)
def test_an_item_is_picked_from_the_shelf_from_a_card_and_at_random(
    browser, url, folder, collection, size
):
    with Visit(browser, url, size=size) as visit:
        visit.page.locator("#browse summary").click()
        visit.page.locator("#shelf button").nth(23).wait_for()
        assert visit.page.locator("#shelf button").count() == 24
        visit.page.locator("#more").click()
        visit.page.locator("#shelf button").nth(47).wait_for()
        visit.page.locator("#shelf button").nth(30).click()
        visit.settle()
        assert visit.ids() == nearest(collection, folder.codes[30:31])
        assert (
            visit.text("#asked span")
            == f"The query is item 30, label {folder.data.database_y[30]}."
        )
        second = visit.ids()[1]
        visit.click(f'.list a[data-item="{second}"]')
        assert visit.ids() == nearest(collection, folder.codes[second : second + 1])
        assert visit.page.evaluate("document.activeElement.id") == "results"
        visit.click("#random")
        item = int(visit.page.locator("#item").input_value())
        assert visit.ids() == nearest(collection, folder.codes[item : item + 1])
        visit.page.locator("#item").fill("5")
        visit.click("button[type=submit]")
        assert visit.ids() == nearest(collection, folder.codes[5:6])


@pytest.mark.parametrize("size", WIDTHS)
def test_vectors_codes_and_texts(browser, url, folder, collection, size):
    with Visit(browser, url, size=size) as visit:
        visit.choose("Vector")
        row = folder.data.query_x[4]
        for text in (str(row.tolist()), " ".join(map(str, row)), "\n".join(map(str, row))):
            visit.page.locator("#vector").fill(text)
            visit.click("button[type=submit]")
            assert visit.ids() == nearest(collection, folder.queries[4:5])
        visit.choose("Code")
        visit.page.locator("#code").fill(folder.queries[9:10].packed.tobytes().hex())
        visit.page.keyboard.press("Enter")
        visit.settle()
        assert visit.ids() == nearest(collection, folder.queries[9:10])
        visit.choose("Text")
        visit.page.locator("#text").fill("a seven: 7")
        visit.click("button[type=submit]")
        labels = folder.data.database_y[visit.ids()]
        assert (labels == 7).mean() > 0.5


@pytest.mark.parametrize(
    ("way", "text", "words"),
    [
        ("Vector", "1 2 three", "“three” is not a number."),
        ("Vector", "1, 2, 3", "Paste 64 numbers; these are 3."),
        ("Code", "12", "Type a code of 8 hexadecimal digits; this one has 2."),
        ("Item", "99999", "ids must be of items that exist, 99999 is not"),
        ("Item", "1e9", "Type the id of an item, a whole number."),
        ("Text", " ", "Type a text to search by."),
    ],
)
def test_what_cannot_be_searched_is_said_in_a_sentence(browser, url, way, text, words):
    with Visit(browser, url) as visit:
        visit.choose(way)
        visit.page.locator(f"#{way.lower()}").fill(text)
        visit.click("button[type=submit]")
        assert visit.text("#problem") == words
        assert visit.page.locator("#problem").get_attribute("role") == "alert"
        assert visit.page.locator(".card").count() == 0


@pytest.mark.parametrize("size", WIDTHS)
def test_sliders_ties_and_labels(browser, url, folder, collection, size):
    code = folder.codes[5:6]
    with Visit(browser, url, "/?item=5", size=size) as visit:
        visit.slide("#k", "25")
        assert visit.ids() == nearest(collection, code, 25)
        assert visit.text("#k-value") == "25"
        visit.slide("#radius", "2")
        distances, ids = (rows[0] for rows in collection.search(code, 25))
        assert visit.ids() == ids[distances <= 2].tolist()
        assert visit.text("#radius-value") == "2"
        visit.slide("#radius", "32")
        assert visit.text("#radius-value") == "any"
        visit.slide("#k", "3")
        visit.click("#ties")
        assert visit.ids() == collection.search(code, 3, ties="complete").ids.tolist()
        visit.click("#ties")
        visit.page.locator("#label").select_option("8")
        visit.settle()
        eights = np.flatnonzero(folder.data.database_y == 8)
        assert visit.ids() == nearest(collection, code, 3, allowed=eights)
        counts = collection.tie_counts(code, allowed=eights)[0]
        assert visit.text("#histogram figcaption").startswith(
            "Distances of this query to items labelled 8."
        )
        visit.page.locator("#histogram summary").click()
        cells = visit.page.locator("#histogram tbody tr").all_inner_texts()
        table = {int(a): int(b) for a, b in (cell.replace(",", "").split() for cell in cells)}
        assert table == {d: n for d, n in enumerate(counts.tolist()) if n}


@pytest.mark.parametrize("size", WIDTHS)
def test_bits_and_real_numbers_side_by_side(browser, url, folder, collection, size):
    with Visit(browser, url, "/?item=5", size=size) as visit:
        visit.click("#compare")
        weights = folder.hasher.project_queries(folder.data.database_x[5:6])
        assert visit.ids(0) == nearest(collection, folder.codes[5:6])
        assert visit.ids(1) == collection.search_real(weights, 10)[1][0].tolist()
        assert visit.page.locator("h3").all_inner_texts() == ["By bits", "By real numbers"]
        left, right = (visit.page.locator(".list").nth(i).bounding_box() for i in (0, 1))
        assert left["y"] == right["y"]
        assert left["x"] + left["width"] <= right["x"]
        assert "place 1 by bits" in visit.page.locator(".list").nth(1).inner_text()
        visit.screenshot(f"serve_compare_{size}", at="#lists" if size == "phone" else "body")
        visit.choose("Code")
        assert visit.page.locator("#compare").is_disabled()
        assert visit.text("#compare-hint") == "A code has no real numbers to compare with."


def test_bits_that_differ_are_those_that_differ(browser, url, folder):
    with Visit(browser, url, "/?item=3&k=8") as visit:
        strips = visit.page.locator(".card svg.bits")
        lines = strips.evaluate_all("all => all.map(s => s.getAttribute('aria-label'))")
        query, total = folder.codes[3:4].bits()[0], np.zeros(32, int)
        for item, line in zip(visit.ids(), lines, strict=True):
            differs = query != folder.codes[item : item + 1].bits()[0]
            total += differs
            places = ", ".join(str(place + 1) for place in np.flatnonzero(differs))
            assert line == (f"Bits that differ: {places}" if places else "No bit differs")
        bars = visit.page.locator("#differences rect title").all_text_contents()
        expected = [
            f"Bit {bit + 1} differs in {n} of 8 results" for bit, n in enumerate(total) if n
        ]
        assert bars == expected
        assert f"bit {total.argmax() + 1}, in {total.max()} of 8" in visit.text("#differences")


def test_an_address_leads_back_to_a_search(browser, url):
    path = "/?by=item&item=17&k=20&radius=6&label=9&ties=complete&compare=1"
    with Visit(browser, url, path) as visit:
        before, headings = visit.ids(), visit.headings()
        checked = {
            name: visit.page.locator(f"#{name}").is_checked() for name in ("ties", "compare")
        }
        assert checked == {"ties": True, "compare": True}
        assert visit.page.locator("#label").input_value() == "9"
        assert visit.page.url.endswith(path)
        visit.page.reload()
        visit.settle()
        assert (visit.ids(), visit.headings()) == (before, headings)
        visit.click("#random")
        assert visit.page.url != url + path
        visit.page.go_back()
        visit.settle()
        assert visit.ids() == before
        href = visit.page.locator(".list a[data-item]").nth(1).get_attribute("href")
        with Visit(browser, url, "/" + href) as other:
            assert f"The query is item {before[1]}" in other.text("#asked")


def test_a_pasted_vector_is_in_the_address_too(browser, url, folder):
    with Visit(browser, url) as visit:
        visit.choose("Vector")
        visit.page.locator("#vector").fill(" ".join(f"{v:g}" for v in folder.data.query_x[0]))
        visit.click("button[type=submit]")
        ids, address = visit.ids(), visit.page.url
    with Visit(browser, url, address.removeprefix(url)) as visit:
        assert visit.ids() == ids


def test_light_and_dark(browser, url):
    color = "getComputedStyle(document.body).backgroundColor"
    light, dark = "rgb(255, 255, 255)", "rgb(20, 24, 29)"
    with Visit(browser, url, scheme="dark") as visit:
        assert visit.page.evaluate(color) == dark
        visit.page.locator("#theme").click()
        assert visit.text("#theme") == "Theme: light"
        assert visit.page.evaluate(color) == light
        visit.page.reload()
        visit.settle()
        assert visit.page.evaluate(color) == light
        visit.page.locator("#theme").click()
        assert visit.page.evaluate(color) == dark
        visit.screenshot("serve_dark")
    with Visit(browser, url) as visit:
        assert visit.page.evaluate(color) == light


def focused(visit):
    return visit.page.evaluate(
        "() => ((e) => e.id || e.value || e.textContent.trim())(document.activeElement)"
    )


@pytest.mark.parametrize("size", WIDTHS)
def test_everything_can_be_done_by_keyboard_alone(browser, url, folder, collection, size):
    with Visit(browser, url, size=size) as visit:
        press = visit.page.keyboard.press
        order = []
        for _ in range(14):
            press("Tab")
            order.append(focused(visit))
            ring = "getComputedStyle(document.activeElement).outlineStyle"
            assert visit.page.evaluate(ring) != "none", order
        assert order[:13] == [
            "Skip to the results",
            "API",
            "theme",
            "item",
            "item",
            "random",
            "Pick an item",
            "k",
            "radius",
            "label",
            "ties",
            "compare",
            "Search",
        ]
        visit.page.locator("#k").focus()
        for _ in range(5):
            press("ArrowRight")
        visit.settle()
        assert visit.ids() == nearest(collection, folder.codes[:1], 15)
        press("Tab")
        for _ in range(30):
            press("ArrowLeft")
        visit.settle()
        assert visit.text("#radius-value") == "2"
        press("Tab")
        press("3")
        visit.settle()
        assert visit.page.locator("#label").input_value() == "3"
        press("Home")
        visit.settle()
        visit.page.locator("#item").focus()
        press("Control+a")
        visit.page.keyboard.type("8")
        press("Enter")
        visit.settle()
        assert visit.text("#asked span").startswith("The query is item 8,")
        visit.open("/?item=8")
        visit.settle()
        press("Tab")
        press("Enter")  # the skip link
        press("Tab")
        press("Tab")
        assert visit.page.evaluate("document.activeElement.dataset.item") == str(
            visit.ids()[0]
        ) or (visit.page.evaluate("document.activeElement.tagName") == "SUMMARY")
        while visit.page.evaluate("document.activeElement.dataset.item") != str(visit.ids()[1]):
            press("Tab")
        second = visit.ids()[1]
        press("Enter")
        visit.settle()
        assert visit.ids() == nearest(collection, folder.codes[second : second + 1])


STATES = {
    "results": "/?item=5&k=12",
    "compare": "/?item=5&compare=1&radius=6",
    "vector": "/?by=vector",
    "problem": "/?item=99999",
    "nothing": "/?by=code&code=ffffffff&radius=0",
    "docs": "/docs",
}


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", WIDTHS)
def test_accessibility_rules_hold_in_every_state(browser, url, size, scheme):
    with Visit(browser, url, size=size, scheme=scheme) as visit:
        for path in STATES.values():
            visit.page.goto(url + path)
            if path == "/docs":
                visit.page.locator("#post-search").wait_for()
            else:
                visit.settle()
                for summary in visit.page.locator("summary:visible").all():
                    summary.click()
                visit.page.wait_for_timeout(100)
            assert accessibility_violations(visit.page) == [], path


def test_the_rules_notice_what_breaks_them(browser, url):
    with Visit(browser, url) as visit:
        visit.page.evaluate("document.querySelector('label[for=item]').remove()")
        visit.page.evaluate("document.querySelector('#status').style.color = '#ccc'")
        found = " ".join(accessibility_violations(visit.page))
    assert "label:" in found
    assert "color-contrast:" in found


def test_the_description_of_the_api_is_a_page_without_help_from_elsewhere(browser, url):
    with Visit(browser, url) as visit:
        visit.page.goto(url + "/docs")
        visit.page.locator("#post-search").wait_for()
        names = visit.page.locator("h3").all_inner_texts()
        assert [name.replace("\n", "") for name in names][:3] == [
            "POST/search",
            "POST/encode",
            "GET/items",
        ]
        assert f"curl {url}/search" in visit.page.locator("#post-search pre").inner_text()
        visit.screenshot("serve_docs")


@pytest.fixture(scope="module")
def pictures(tmp_path_factory, folder):
    """A server of a model that reads pictures: digits in 16 × 16 pixels."""
    pil = pytest.importorskip("PIL.Image")
    pytest.importorskip("torch")
    place = tmp_path_factory.mktemp("pictures")
    data, rows = folder.data, []
    for item, x in enumerate(data.database_x[:300]):
        grey = np.kron(255 - 15 * x.reshape(8, 8), np.ones((2, 2))).astype(np.uint8)
        name = place / "files" / str(data.database_y[item]) / f"{item:04d}.png"
        name.parent.mkdir(parents=True, exist_ok=True)
        pil.fromarray(grey).convert("RGB").save(name)
    listed = sorted((place / "files").rglob("*.png"))
    rows = np.stack([np.asarray(pil.open(name)) for name in listed])
    labels = [int(name.parent.name) for name in listed]
    options = {"encoder": "cnn", "epochs": 2, "n_threads": 1, "device": "cpu"}
    hasher = methods.get("talr-ap", n_bits=24, random_state=0, **options).fit(rows, labels)
    with Collection.create(place / "c", 24) as collection:
        collection.add(hasher.encode(rows))
    with running(create_app(place / "c", hasher, images=place / "files")) as address:
        yield address, listed, hasher, rows


@pytest.mark.slow
@pytest.mark.parametrize("size", WIDTHS)
def test_a_picture_is_chosen_or_dropped(browser, pictures, size):
    url, listed, hasher, rows = pictures
    bits = hasher.encode(rows).bits()
    expected = {}
    for item in (40, 200):
        distances = (bits != bits[item]).sum(axis=1)
        expected[item] = np.lexsort((np.arange(len(bits)), distances))[:10].tolist()
    with Visit(browser, url, size=size) as visit:
        assert visit.page.get_by_text("Vector", exact=True).is_hidden()
        visit.choose("Picture")
        visit.page.locator("#picture").set_input_files(listed[40])
        visit.settle()
        visit.page.wait_for_function("() => document.querySelectorAll('.card').length === 10")
        assert visit.ids() == expected[40]
        assert visit.page.locator("#preview").is_visible()
        data = base64.b64encode(listed[200].read_bytes()).decode()
        drop = """data => {
            const bytes = Uint8Array.from(atob(data), c => c.charCodeAt(0));
            const files = new DataTransfer();
            files.items.add(new File([bytes], 'x.png', { type: 'image/png' }));
            const zone = document.querySelector('#drop');
            const facts = { dataTransfer: files, bubbles: true, cancelable: true };
            for (const name of ['dragenter', 'dragover', 'drop']) {
                zone.dispatchEvent(new DragEvent(name, facts));
            }
        }"""
        visit.page.evaluate(drop, data)
        visit.page.wait_for_timeout(300)
        visit.settle()
        assert visit.ids() == expected[200]
        assert "picture=" not in visit.page.url
        assert accessibility_violations(visit.page) == []
        if size == "desktop":
            visit.screenshot("serve_picture")
        broken = io.BytesIO(b"no picture")
        visit.page.locator("#picture").set_input_files(
            {"name": "x.png", "mimeType": "image/png", "buffer": broken.getvalue()}
        )
        visit.page.wait_for_timeout(300)
        assert "pictures must be PNG" in visit.text("#problem")


LARGE = 2**53 + 1  # the first whole number that JavaScript does not have


@pytest.fixture
def large_ids(folder, tmp_path):
    """Twelve items around 2^53 and at the largest id."""
    ids = np.array([*range(LARGE - 5, LARGE + 6), 2**63 - 2])
    with Collection.create(tmp_path / "c", 32) as collection:
        collection.upsert(folder.codes[: len(ids)], ids)
    rows = [{"id": int(item), "label": "a", "text": f"the text of {item}"} for item in ids]
    (tmp_path / "items.jsonl").write_text("\n".join(map(json.dumps, rows)))
    with running(create_app(tmp_path / "c", items=tmp_path / "items.jsonl")) as address:
        yield address, ids.tolist()


def test_ids_that_javascript_has_no_numbers_for_lead_to_their_items(browser, large_ids):
    address, ids = large_ids
    with Visit(browser, address, path=f"/?item={LARGE}&k=12") as visit:
        assert sorted(visit.ids()) == ids
        assert f"The query is item {LARGE}, label a." in visit.text("#asked")
        assert f"the text of {LARGE}" in visit.text("#asked")
        for item in (LARGE + 2, ids[-1], LARGE):
            visit.click(f"a[data-item='{item}']")
            assert f"the text of {item}" in visit.text("#asked")
            assert f"item={item}" in visit.page.url
            assert visit.page.locator(".query-itself a").get_attribute("data-item") == str(item)
        visit.page.locator("#browse summary").click()
        visit.page.locator("#shelf button").nth(11).wait_for()
        visit.page.locator("#shelf button").nth(ids.index(LARGE + 4)).click()
        visit.settle()
        assert f"the text of {LARGE + 4}" in visit.text("#asked")
