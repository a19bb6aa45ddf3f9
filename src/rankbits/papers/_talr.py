"""Hashing as tie-aware learning to rank: its tables and figures."""

from rankbits.papers._exact import tied_list
from rankbits.papers._exact_shows import show_tied_list
from rankbits.papers._exhibit import Exhibit, Part
from rankbits.papers._ranges import show_ranges
from rankbits.papers._shows import show_tables

SOURCE = (
    "He, Cakir, Bargal and Sclaroff, Hashing as tie-aware learning to rank, CVPR 2018 "
    "(arXiv:1705.08562)"
)
_METHODS = ("bre", "structhash", "machash", "fasthash", "dpsh", "dtsh", "mihash")  # of Figure 3
_BY_GRADIENT = ("dpsh", "dtsh", "mihash", "talr-ap")
_FEATURES = (
    "CIFAR-10 by features of an EfficientNet-Lite0 that stay as they are, where the paper trains "
    "VGG-F along or uses its fc7 features"
)
_S1 = Part("cifar10-s1", (*_METHODS, "talr-ap"), (12, 24, 32, 48), ("AP",), "CIFAR-10, setting 1")

EXHIBITS = (
    Exhibit(
        "talr-fig1",
        SOURCE,
        "Figure 1",
        "a list of tied items scores whatever its order is made to be",
        show_tied_list,
        exact=tied_list,
    ),
    Exhibit(
        "talr-fig3",
        SOURCE,
        "Figure 3 (arXiv: Figure 2)",
        "ranges of mean AP over all ways to break ties",
        show_ranges,
        (_S1,),
        _FEATURES,
    ),
    Exhibit(
        "talr-table1",
        SOURCE,
        "Table 1",
        "AP_T on CIFAR-10 and with shared tags",
        show_tables,
        (
            _S1,
            Part("cifar10-s2", _BY_GRADIENT, (16, 24, 32, 48), ("AP",), "CIFAR-10, setting 2"),
            Part(
                "corel5k-ap",
                (*_METHODS, "talr-ap"),
                (12, 24, 32, 48),
                ("AP",),
                "Corel5k in place of NUS-WIDE",
            ),
            Part(
                "nuswide-ap",
                (*_METHODS, "talr-ap"),
                (12, 24, 32, 48),
                ("AP", "AP@5000"),
                "NUS-WIDE",
                is_optional=True,
            ),
        ),
        f"{_FEATURES}; Corel5k, 374 tags, for NUS-WIDE, 21 labels, unless the folder of data has "
        "NUS-WIDE itself",
    ),
    Exhibit(
        "talr-table2",
        SOURCE,
        "Table 2",
        "AP@1000 with 100 classes",
        show_tables,
        (
            Part(
                "cifar100-ap",
                ("hashnet", "mihash", "talr-ap"),
                (16, 32, 48, 64),
                ("AP@1000",),
                "CIFAR-100 in place of ImageNet100",
            ),
            Part(
                "imagenet100",
                ("hashnet", "mihash", "talr-ap"),
                (16, 32, 48, 64),
                ("AP@1000",),
                "ImageNet100",
                is_optional=True,
            ),
        ),
        "CIFAR-100's classes and features of an EfficientNet-Lite0 for ImageNet100 and AlexNet, "
        "unless the folder of data has ImageNet100 itself",
    ),
    Exhibit(
        "talr-table3",
        SOURCE,
        "Table 3 (arXiv: Table 2)",
        "NDCG_T with counted tags and with levels by distance",
        show_tables,
        (
            Part(
                "corel5k-ndcg",
                (*_METHODS, "talr-ndcg"),
                (16, 32, 48, 64),
                ("nDCG",),
                "Corel5k in place of NUS-WIDE",
            ),
            Part(
                "distance-ndcg",
                (*_METHODS, "talr-ndcg"),
                (16, 32, 48, 64),
                ("nDCG",),
                "CIFAR-10 features in place of LabelMe",
            ),
            Part(
                "nuswide-ndcg",
                (*_METHODS, "talr-ndcg"),
                (16, 32, 48, 64),
                ("nDCG",),
                "NUS-WIDE",
                is_optional=True,
            ),
            Part(
                "labelme-ndcg",
                (*_METHODS, "talr-ndcg"),
                (16, 32, 48, 64),
                ("nDCG",),
                "LabelMe",
                is_optional=True,
            ),
        ),
        "Corel5k's counted tags for those of NUS-WIDE, and levels by distance between features of "
        "CIFAR-10 for those between GIST descriptors of LabelMe, unless the folder of data has "
        "these sets",
    ),
)
