"""What the papers call the methods, and how the tables here order them."""

TITLES = {
    "bre": "BRE",
    "structhash": "StructHash",
    "machash": "MACHash",
    "fasthash": "FastHash",
    "dpsh": "DPSH",
    "dtsh": "DTSH",
    "mihash": "MIHash",
    "hashnet": "HashNet",
    "talr-ap": "TALR-AP",
    "talr-ndcg": "TALR-NDCG",
    "rsh": "RSH",
    "sh": "SH",
    "ssh": "SSH",
    "cmh": "CMH",
    "wtah": "WTAH",
    "lsh": "LSH",
    "itq": "ITQ",
    "lwh": "LWH",
    "mlh": "MLH",
    "agh": "AGH",
    "klsh": "KLSH",
    "density": "DSH (density)",
    "pca-rr": "PCA-RR",
    "pcah": "PCAH",
    "sklsh": "SKLSH",
    "sph": "SpH",
    "dsh": "DSH",
    "dsh-dispersed": "dispersed DSH",
}


def title_of(label: str) -> str:
    """The paper's name of a method, and whatever its label says beside.

    >>> title_of("dsh (least_level=2)")
    'DSH (least_level=2)'
    """
    method, blank, rest = label.partition(" ")
    return TITLES.get(method, method) + blank + rest
