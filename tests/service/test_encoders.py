"""Texts and pictures, where the model takes them, are encoded as the model would encode them."""

import base64
import importlib.util
import io

import httpx
import numpy as np
import pytest

from rankbits import methods
from rankbits.errors import InputError
from rankbits.index import Collection
from rankbits.service import Limits, create_app
from service.conftest import running
from service.problems import assert_problem, post

WORDS = [f"word{i}" for i in range(12)]


def bag_of_words(texts):
    """How often each word is in each text."""
    return np.array([[text.split().count(word) for word in WORDS] for text in texts], float)


@pytest.fixture
def hasher(rng):
    return methods.get("lsh", n_bits=16, random_state=0).fit(rng.standard_normal((60, 12)))


@pytest.fixture
def place(hasher, rng, tmp_path):
    with Collection.create(tmp_path / "c", 16) as collection:
        collection.add(hasher.encode(rng.standard_normal((60, 12))))
    return tmp_path / "c"


def test_texts_go_through_the_function_that_is_given(hasher, place):
    texts = ["word1 word3 word3", "word7"]
    with running(create_app(place, hasher, text_encoder=bag_of_words)) as url:
        stats = httpx.get(url + "/stats").json()
        assert stats["accepts"] == ["codes", "ids", "vectors", "texts"]
        with Collection.open(place) as collection:
            expected = collection.search(hasher.encode_queries(bag_of_words(texts)), 4)[1]
        assert post(url, "/search", {"texts": texts, "k": 4}).json()["ids"] == expected.tolist()
        codes = post(url, "/encode", {"texts": texts}).json()["codes"]
        assert codes == [row.tobytes().hex() for row in hasher.transform(bag_of_words(texts))]
        assert_problem(post(url, "/search", {"texts": ["x" * 10_001]}), 422, "10000 characters")
        assert_problem(post(url, "/search", {"pictures": ["AAAA"]}), 422, "reads vectors")


def test_a_function_of_texts_needs_a_model(place):
    with pytest.raises(InputError, match="text_encoder must come with a model"):
        create_app(place, text_encoder=bag_of_words)


@pytest.mark.skipif(
    importlib.util.find_spec("sentence_transformers") is None,
    reason="sentence-transformers is not installed",
)
@pytest.mark.filterwarnings("ignore")
def test_texts_go_through_a_sentence_transformer(hasher, place, tmp_path):
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import BoW

    from rankbits.adapters.sentence_transformers import append_hasher

    model = SentenceTransformer(modules=[BoW(WORDS)], device="cpu")
    model.save(str(tmp_path / "texts"))
    append_hasher(model, hasher).save(str(tmp_path / "both"))
    hasher.save(tmp_path / "model")
    texts = ["word1 word3", "word7 word2 word0"]
    expected = hasher.encode_queries(model.encode_query(texts))
    for settings in (
        {"model": tmp_path / "model", "text_model": tmp_path / "texts"},
        {"model": tmp_path / "both"},
    ):
        with running(create_app(place, **settings)) as url:
            codes = post(url, "/encode", {"texts": texts, "as": "queries"}).json()["codes"]
            assert codes == [row.tobytes().hex() for row in expected.packed]


@pytest.fixture(scope="module")
def pixels(tmp_path_factory):
    """A model that reads pictures of 8 × 8 pixels, and a collection of it."""
    pytest.importorskip("torch")
    folder = tmp_path_factory.mktemp("pixels")
    rng = np.random.default_rng(0)
    x = rng.integers(0, 256, (60, 8, 8, 3), np.uint8)
    options = {"encoder": "cnn", "epochs": 1, "n_threads": 1, "device": "cpu"}
    hasher = methods.get("talr-ap", n_bits=16, random_state=0, **options).fit(x, np.arange(60) % 3)
    with Collection.create(folder / "c", 16) as collection:
        collection.add(hasher.encode(x))
    return folder / "c", hasher, x


def base64_of(pixels, kind="PNG"):
    from PIL import Image

    out = io.BytesIO()
    Image.fromarray(pixels).save(out, kind)
    return base64.b64encode(out.getvalue()).decode()


def test_a_picture_finds_itself(pixels):
    pytest.importorskip("PIL")
    place, hasher, x = pixels
    with running(create_app(place, hasher, limits=Limits(pixels=4000))) as url:
        assert httpx.get(url + "/stats").json()["accepts"] == ["codes", "ids", "pictures"]
        body = {"pictures": [base64_of(one) for one in x[:3]], "k": 1, "include": ["codes"]}
        found = post(url, "/search", body).json()
        assert found["distances"] == [[0]] * 3
        assert found["query_codes"] == [row.tobytes().hex() for row in hasher.transform(x[:3])]
        large = base64_of(np.zeros((20, 30, 3), np.uint8), "JPEG")
        assert post(url, "/search", {"pictures": [large]}).status_code == 200
        bomb = base64_of(np.zeros((80, 80, 3), np.uint8))
        assert_problem(post(url, "/search", {"pictures": [bomb]}), 422, "4000 pixels")
        several = [base64_of(np.zeros((50, 50, 3), np.uint8))] * 2
        assert_problem(post(url, "/search", {"pictures": several}), 422, "4000 pixels together")
        for bad in ("not base64!", "AAAA", "", base64_of(x[0])[:40]):
            assert_problem(post(url, "/search", {"pictures": [bad]}), 422, "pictures must be")
        assert_problem(post(url, "/search", {"vectors": [[0.0]]}), 422, "reads pictures")


def test_what_does_not_fit_the_collection_is_refused_at_the_start(hasher, place, rng, tmp_path):
    other = methods.get("lsh", n_bits=16, random_state=1).fit(rng.standard_normal((60, 12)))
    longer = methods.get("lsh", n_bits=24, random_state=0).fit(rng.standard_normal((60, 12)))
    for model, words in ((other, "different things"), (longer, "16 bits")):
        with pytest.raises(InputError, match=words):
            create_app(place, model)
    with pytest.raises(InputError, match="vectors must have the shape"):
        create_app(place, hasher, vectors=np.zeros((60, 3)))
    with pytest.raises(InputError):
        create_app(tmp_path / "nothing", hasher)
    with pytest.raises(InputError):
        create_app(place, tmp_path / "nothing")
    with Collection.open(place, writable=True):  # what was refused holds no lock
        pass
