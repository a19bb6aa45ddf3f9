"""Public data sets as people have them on disk: where each is looked for, and how it is read.

A set that protocols call NAME is a file NAME*.npz of features if the folder has one, else what its
`PublicLayout` finds. To add a set, write its layout here.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass

from rankbits.datasets import (
    Labelled,
    load_cifar,
    load_collection,
    load_imagenet,
    load_labelme,
    load_nuswide_features,
    load_requests,
    load_tiny_gist,
)

Reader = Callable[[str], Labelled]


@dataclass(frozen=True)
class PublicLayout:
    """How a set lies on disk.

    Attributes
    ----------
    files : what to look for, as a reader of a table would write it
    described : where the set is described
    marks : paths within the folder of the data, or within one of its sub-folders, one of which
        tells that the set is there
    is_folder : whether the reader takes the folder that has the mark, or the marked file itself
    read : the reader
    """

    files: str
    described: str
    marks: tuple[str, ...] = ()
    is_folder: bool = False
    read: Reader | None = None

    def find(self, folder: str) -> str | None:
        """What to read within a folder; None if the set is not there."""
        places = [folder, *_sub_folders(folder)] if self.marks else []
        for place in places:
            for mark in self.marks:
                path = os.path.join(place, *mark.split("/"))
                if os.path.exists(path):
                    return place if self.is_folder else path
        return None


def _sub_folders(folder: str) -> list[str]:
    return sorted(entry.path for entry in os.scandir(folder) if entry.is_dir())


_KRIZHEVSKY = "Krizhevsky, Learning multiple layers of features from tiny images, 2009"
LAYOUTS = {
    "cifar10": PublicLayout(
        "cifar10*.npz",
        _KRIZHEVSKY,
        ("data_batch_1",),
        is_folder=True,
        read=load_cifar,
    ),
    "cifar100": PublicLayout("cifar100*.npz", _KRIZHEVSKY),
    "corel5k": PublicLayout(
        "corel5k*.npz",
        "Duygulu, Barnard, de Freitas and Forsyth, Object recognition as machine translation, "
        "ECCV 2002",
    ),
    "clinc150": PublicLayout(
        "clinc150*.npz",
        "Larson et al., An evaluation dataset for intent classification and out-of-scope "
        "prediction, EMNLP 2019",
    ),
    "npl": PublicLayout(
        "npl*.npz",
        "Vaswani and Cameron, The National Physical Laboratory experiments in statistical word "
        "associations, 1970",
    ),
    "nuswide": PublicLayout(
        "Low_Level_Features/Train_Normalized_*.dat, Groundtruth/TrainTestLabels/",
        "Chua et al., NUS-WIDE: a real-world web image database from National University of "
        "Singapore, CIVR 2009",
        ("Groundtruth",),
        is_folder=True,
        read=load_nuswide_features,
    ),
    "labelme": PublicLayout(
        "LabelMe_gist.mat",
        "Torralba, Fergus and Weiss, Small codes and large image databases for recognition, "
        "CVPR 2008",
        ("LabelMe_gist.mat", "LabelMe_GIST.mat"),
        read=load_labelme,
    ),
    "imagenet100": PublicLayout(
        "classes.txt, train/CLASS/*.JPEG, val/CLASS/*.JPEG",
        "Deng et al., ImageNet, CVPR 2009; its 100 classes: Cao et al., HashNet, ICCV 2017",
        ("classes.txt",),
        is_folder=True,
        read=load_imagenet,
    ),
    "tinyimages": PublicLayout(
        "tinygist80million.bin",
        "Torralba, Fergus and Freeman, 80 million tiny images, IEEE TPAMI 30(11), 2008",
        ("tinygist80million.bin",),
        read=load_tiny_gist,
    ),
}
NPZ_READERS = {  # arrays that tell a layout, and its reader; `load_features` reads all others
    frozenset({"documents.npy", "queries.npy", "qrels.npy"}): load_collection,
    frozenset({"x.npy", "y.npy", "split.npy", "domain.npy"}): load_requests,
}


def layout_of(name: str) -> PublicLayout:
    """The layout of a set; one that nothing is known of is a file of features.

    >>> layout_of("digits").files
    'digits*.npz'
    """
    return LAYOUTS.get(name) or PublicLayout(f"{name}*.npz", "the protocol's own documentation")
