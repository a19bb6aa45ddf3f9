"""The protocols: data, split rule, relevance, code lengths, metrics and the papers' numbers.

To add one, write an instance here; nothing else needs to know. `register` adds one from outside.
"""

from rankbits import _check
from rankbits.benchmark import _published as papers
from rankbits.benchmark._pixels import PIXELS
from rankbits.benchmark._protocol import Protocol
from rankbits.benchmark._relevance import (
    Judged,
    Near,
    NestedClasses,
    SameClass,
    SameSuperclass,
    SharedTags,
)
from rankbits.benchmark._splits import (
    NewClasses,
    PerClass,
    PerTag,
    Sizes,
    StandardParts,
    StandardQueries,
)
from rankbits.errors import InputError

YARDSTICKS = ("lsh", "pcah", "itq", "sign")
_UNSUPERVISED = ("pca-rr", "sh", "sklsh", "klsh", "agh", "sph", "density", "wtah", "cmh")
_LEARNED = (  # from classes
    "talr-ap",
    "rsh",
    "lwh",
    "fasthash",
    "machash",
    "structhash",
    "dsh",
    "dsh-dispersed",
    "mihash",
    "dpsh",
    "dtsh",
    "hashnet",
    "csq",
    "orthohash",
    "dpn",
    "greedyhash",
)
_CLASSICAL = ("ksh", "sdh", "ssh", "bre", "mlh")
_DISPERSION = {name: {"posterior": 0, "epochs": 30} for name in ("dsh", "dsh-dispersed")}
_CURVES = tuple(f"{name}@{k}" for k in (100, 1000, 2000, 5000, 10000, 20000) for name in "PR")
_SHORT_CURVES = tuple(f"{name}@{k}" for k in (10, 50, 100, 200, 500, 1000, 2000) for name in "PR")
_GRADIENT = ("talr-ap", "talr-ndcg", "mihash", "dpsh", "dtsh", "hashnet")
_LINEAR = {name: {"encoder": "linear"} for name in _GRADIENT}
_TALR_BASELINES = ("bre", "machash", "fasthash", "structhash", "dpsh", "dtsh", "mihash")
_RSH_METHODS = ("rsh", "sh", "ssh", "cmh", "wtah", "lsh", "itq")
_RSH_METRICS = ("nDCG(rsh)", "nDCG", "ACG@r3")
_RSH_NOTE = "the paper's curves (ICCV 2013) have no numbers"
_GROWING = {
    "additive": {"classes": "grow"},
    "talr-ap": {"classes": "grow", "queries": "real"},
}
_NEW_NOTE = "a seed draws classes, labeled rows and queries; ask by --by weights"
_GROWN_NOTE = "as {}-new, but a fit sees the whole database, without labels where it has none"
_LWH_METHODS = ("lwh", "rsh", "ssh", "mlh", "agh", "klsh", "sh", "lsh")


_PROTOCOLS = (
    Protocol(
        "cifar10-s1",
        "CIFAR-10, setting 1: 100 queries and 500 training rows a class",
        "cifar10",
        PerClass(queries=100, training=500),
        SameClass(),
        (12, 24, 32, 48),
        ("AP", "AP.worst", "AP.best", "P@r2"),
        (*YARDSTICKS, *_UNSUPERVISED, *_LEARNED, *_CLASSICAL),
        (papers.CIFAR10_S1, papers.CIFAR10_LATER),
        note="drawn from all 60,000 rows; the database is all rows but the queries; all methods "
        "at all lengths take most of an hour",
    ),
    Protocol(
        "cifar10-s2",
        "CIFAR-10, setting 2: the standard test part searches the training part",
        "cifar10",
        StandardParts(),
        SameClass(),
        (16, 24, 32, 48),
        ("AP",),
        (*YARDSTICKS, "talr-ap"),
        (papers.CIFAR10_S2,),
        note="one split, whatever the seed; training rows are the database",
    ),
    Protocol(
        "corel5k-ap",
        "Corel5k: relevant if a tag is shared",
        "corel5k",
        StandardParts(),
        SharedTags(),
        (12, 24, 32, 48),
        ("AP",),
        (*YARDSTICKS, "talr-ap"),
        (papers.NUSWIDE_AP,),
        note="one split, whatever the seed; training rows are the database",
    ),
    Protocol(
        "corel5k-ndcg",
        "Corel5k: the level is the number of shared tags",
        "corel5k",
        StandardParts(),
        SharedTags(graded=True),
        (16, 32, 48, 64),
        ("nDCG",),
        (*YARDSTICKS, "talr-ap", "talr-ndcg"),
        (papers.NUSWIDE_NDCG,),
        note="one split, whatever the seed; training rows are the database",
    ),
    Protocol(
        "distance-ndcg",
        "CIFAR-10 features without labels: levels by distance",
        "cifar10",
        Sizes(queries=2000, database=20000, training=5000),
        Near(shares=(0.05, 0.01, 0.002, 0.001), levels=(1, 2, 5, 10)),
        (16, 32, 48, 64),
        ("nDCG", "nDCG(8-bit)", "nDCG(released)"),
        (*YARDSTICKS, "talr-ndcg"),
        (papers.LABELME,),
        _LINEAR,
        note="stands for LabelMe's setting; encoders are linear; labels are not used",
    ),
    Protocol(
        "rsh-cifar100",
        "CIFAR-100: level 2 for the same class, 1 for the same superclass; 1,100 labeled rows",
        "cifar100",
        Sizes(queries=1000, database=59000, training=1100),
        NestedClasses(),
        (8, 12, 16, 24, 32),
        ("nDCG(rsh)", "nDCG", "ACG@r3"),
        (*YARDSTICKS, "sh", "cmh", "wtah", "rsh"),
        note="drawn from all 60,000 rows; the paper's curves (ICCV 2013, Fig. 2) have no numbers",
    ),
    Protocol(
        "mlgap-cifar10",
        "CIFAR-10, standard parts: how good the near codes are, and how evenly used",
        "cifar10",
        StandardParts(),
        SameClass(),
        (12, 24),
        ("AP", "LGAP@r2"),
        ("lsh", "dsh", "dsh-dispersed"),
        (papers.MLGAP_CIFAR10, papers.MLGAP_CIFAR10_AP),
        _DISPERSION,
        note="one split, whatever the seed; bits read the rows, for 30 epochs",
    ),
    Protocol(
        "mlgap-cifar100",
        "CIFAR-100, standard parts: learned from classes in superclasses, judged by superclass",
        "cifar100",
        StandardParts(),
        SameSuperclass(),
        (12, 24),
        ("AP", "LGAP@r2"),
        ("lsh", "dsh", "dsh-dispersed"),
        (papers.MLGAP_CIFAR100, papers.MLGAP_CIFAR100_AP),
        _DISPERSION,
        note="one split, whatever the seed; levels of training are 2, 1, 0; 30 epochs",
    ),
    Protocol(
        "lwh-cifar10",
        "CIFAR-10, lists: 2,000 queries, 1,000 labeled training rows",
        "cifar10",
        Sizes(queries=2000, database=58000, training=1000),
        SameClass(),
        (8, 16, 24, 32, 48),
        ("AP", "P@r2", *_CURVES),
        (*YARDSTICKS, "sh", "klsh", "agh", "lwh"),
        note="drawn from all 60,000 rows; lwh takes 300 training rows as queries; the paper gives "
        "methods without labels 3,000 training rows",
    ),
    Protocol(
        "lwh-corel5k",
        "Corel5k, lists: 1,000 queries, 1,000 labeled training rows, relevant if a tag is shared",
        "corel5k",
        Sizes(queries=1000, database=3999, training=1000),
        SharedTags(),
        (8, 16, 24, 32, 48),
        ("AP", "P@r2", *_SHORT_CURVES),
        _LWH_METHODS,
        note="drawn from all 4,999 rows; stands for NUS-WIDE, LWH's second set",
    ),
    Protocol(
        "rsh-corel5k",
        "Corel5k: the level is the number of shared tags; 1,100 labeled rows",
        "corel5k",
        Sizes(queries=1000, database=3999, training=1100),
        SharedTags(graded=True),
        (8, 12, 16, 24, 32),
        _RSH_METRICS,
        _RSH_METHODS,
        note=f"drawn from all 4,999 rows; stands for NUS-WIDE; {_RSH_NOTE}",
    ),
    Protocol(
        "rsh-distance",
        "CIFAR-10 features without labels: level 2 within the 2nd percentile of distances, 1 "
        "within the 5th; 1,100 training rows",
        "cifar10",
        Sizes(queries=1000, database=59000, training=1100),
        Near(shares=(0.05, 0.02), levels=(1, 2)),
        (8, 12, 16, 24, 32),
        _RSH_METRICS,
        _RSH_METHODS,
        note=f"stands for the one million tiny images; labels are not used; {_RSH_NOTE}",
    ),
    Protocol(
        "rsh-tinyimages",
        "One million tiny images, GIST: level 2 within the 2nd percentile of distances, 1 within "
        "the 5th; 1,100 training rows",
        "tinyimages",
        Sizes(queries=1000, database=999_000, training=1100),
        Near(shares=(0.05, 0.02), levels=(1, 2)),
        (8, 12, 16, 24, 32),
        _RSH_METRICS,
        _RSH_METHODS,
        note=f"the first million rows of the file; {_RSH_NOTE}",
    ),
    Protocol(
        "cifar100-ap",
        "CIFAR-100: the standard test part searches the training part, 130 labeled rows a class",
        "cifar100",
        StandardQueries(training=130),
        SameClass(),
        (16, 32, 48, 64),
        ("AP@1000", "AP"),
        ("hashnet", "mihash", "talr-ap", "itq"),
        (papers.IMAGENET100,),
        note="100 classes, as ImageNet100 has; AP@1000 divides by the relevant items among the "
        "first 1,000",
    ),
    Protocol(
        "imagenet100",
        "ImageNet100: validation pictures search the training part, 130 labeled rows a class",
        "imagenet100",
        StandardQueries(training=130),
        SameClass(),
        (16, 32, 48, 64),
        ("AP@1000", "AP"),
        ("hashnet", "mihash", "talr-ap", "itq"),
        (papers.IMAGENET100,),
        note="features in imagenet100*.npz, or pictures in folders, which are resized to 64 x 64",
    ),
    Protocol(
        "nuswide-ap",
        "NUS-WIDE, 21 labels: relevant if one is shared; 100 queries, 500 training rows a label",
        "nuswide",
        PerTag(queries=100, training=500),
        SharedTags(),
        (12, 24, 32, 48),
        ("AP", "AP.worst", "AP.best", "AP@5000"),
        (*_TALR_BASELINES, "talr-ap"),
        (papers.NUSWIDE_AP, papers.NUSWIDE_AP5K),
        note="features in nuswide*.npz, or the low-level ones of the public files",
    ),
    Protocol(
        "nuswide-ndcg",
        "NUS-WIDE, 21 labels: the level is the number of shared labels",
        "nuswide",
        PerTag(queries=100, training=500),
        SharedTags(graded=True),
        (16, 32, 48, 64),
        ("nDCG",),
        (*_TALR_BASELINES, "talr-ndcg"),
        (papers.NUSWIDE_NDCG,),
        note="features in nuswide*.npz, or the low-level ones of the public files",
    ),
    Protocol(
        "labelme-ndcg",
        "LabelMe-22K, GIST without labels: levels by distance",
        "labelme",
        Sizes(queries=2000, database=20000, training=5000),
        Near(shares=(0.05, 0.01, 0.002, 0.001), levels=(1, 2, 5, 10)),
        (16, 32, 48, 64),
        ("nDCG", "nDCG(8-bit)", "nDCG(released)"),
        (*_TALR_BASELINES, "talr-ndcg"),
        (papers.LABELME,),
        _LINEAR,
        note="descriptors are centered and of unit length; encoders are linear",
    ),
    Protocol(
        "clinc150",
        "CLINC150, requests: level 2 for the same intent, 1 for the same domain",
        "clinc150",
        StandardParts(),
        NestedClasses(),
        (16, 32, 64),
        ("nDCG", "nDCG@10", "P@r2"),
        (*YARDSTICKS, "rsh", "talr-ndcg"),
        note="one split, whatever the seed; training and validation requests are the database",
    ),
    Protocol(
        "clinc150-new",
        "CLINC150, requests: 100 intents known by 10,000 labeled rows, 50 new; both are asked for",
        "clinc150",
        NewClasses(known=100, training=10_000, queries=1000),
        SameClass(),
        (64,),
        ("AP",),
        ("itq", "talr-ap", "additive"),
        defaults=_GROWING,
        note=_NEW_NOTE,
    ),
    Protocol(
        "clinc150-grown",
        "CLINC150, requests: 100 intents known, 50 new, of which rows without labels are there",
        "clinc150",
        NewClasses(known=100, training=10_000, queries=1000, sees_items=True),
        SameClass(),
        (64,),
        ("AP",),
        ("itq", "additive"),
        defaults=_GROWING,
        note=_GROWN_NOTE.format("clinc150"),
    ),
    Protocol(
        "cifar100-new",
        "CIFAR-100: 60 classes known by 10,000 labeled rows, 40 new; both are asked for",
        "cifar100",
        NewClasses(known=60, training=10_000, queries=1000),
        SameClass(),
        (64,),
        ("AP",),
        ("itq", "talr-ap", "additive"),
        defaults=_GROWING,
        note=_NEW_NOTE,
    ),
    Protocol(
        "cifar100-grown",
        "CIFAR-100: 60 classes known, 40 new, of which rows without labels are there",
        "cifar100",
        NewClasses(known=60, training=10_000, queries=1000, sees_items=True),
        SameClass(),
        (64,),
        ("AP",),
        ("itq", "additive"),
        defaults=_GROWING,
        note=_GROWN_NOTE.format("cifar100"),
    ),
    Protocol(
        "npl",
        "NPL, abstracts: judged queries, nothing to learn from but the abstracts",
        "npl",
        StandardParts(),
        Judged(),
        (64, 128, 256),
        ("nDCG@10", "AP", "R@100"),
        (*YARDSTICKS, "talr-ndcg"),
        note="one split, whatever the seed; 93 queries, so differences below .02 say little",
    ),
)


_BY_NAME = {protocol.name: protocol for protocol in (*_PROTOCOLS, *PIXELS)}
_UNLISTED: set[str] = set()


def protocols() -> tuple[Protocol, ...]:
    """All protocols.

    >>> {"cifar10-s1", "mlgap-cifar100"} <= {protocol.name for protocol in protocols()}
    True
    """
    return tuple(known for name, known in _BY_NAME.items() if name not in _UNLISTED)


def protocol(name: str | Protocol) -> Protocol:
    """A protocol by name.

    Parameters
    ----------
    name : one of the names of `protocols`, or a `Protocol`, which is returned as it is
    """
    if isinstance(name, Protocol):
        return name
    return _BY_NAME[_check.choice("protocol", name, tuple(_BY_NAME))]


def find_protocol(name: str) -> Protocol | None:
    """A protocol by name, or None: results may be of one that this process does not know.

    Parameters
    ----------
    name : of a protocol
    """
    return _BY_NAME.get(name)


def register(protocol: Protocol, *, is_listed: bool = True) -> Protocol:
    """Add a protocol, so that `run` and the command line know its name.

    Parameters
    ----------
    protocol : Protocol
        Its name must be new.
    is_listed : bool, default=True
        Whether `protocols` shows it.
    """
    if _BY_NAME.get(protocol.name, protocol) != protocol:
        raise InputError(f"protocol {protocol.name!r} is registered already; choose another name")
    _BY_NAME[protocol.name] = protocol
    if not is_listed:
        _UNLISTED.add(protocol.name)
    return protocol
