"""What a wheel says about itself: the licences of all it carries, and dependencies with bounds."""

import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def requirements():
    project = PROJECT["project"]
    extras = project["optional-dependencies"].values()
    lists = [PROJECT["build-system"]["requires"], project["dependencies"], *extras]
    found = {Requirement(line) for lines in lists for line in lines}
    return sorted((one for one in found if one.name != "rankbits"), key=str)


def test_the_licences_of_what_the_extension_carries_are_listed_and_there():
    files = [file for p in PROJECT["project"]["license-files"] for file in sorted(ROOT.glob(p))]
    names = [file.relative_to(ROOT).as_posix() for file in files]
    assert names == ["LICENSE", "licenses/nanobind.txt", "licenses/robin-map.txt"]
    nanobind, robin_map = (file.read_text() for file in files[1:])
    assert nanobind.startswith("Copyright (c) 2022 Wenzel Jakob")
    assert "Redistributions in binary form must reproduce" in nanobind
    assert "Copyright (c) 2017 Thibaut Goetghebuer-Planchon" in robin_map
    assert "Permission is hereby granted, free of charge" in robin_map


@pytest.mark.parametrize("requirement", requirements(), ids=str)
def test_a_dependency_has_bounds_that_the_installed_version_is_within(requirement):
    operators = {bound.operator for bound in requirement.specifier}
    assert operators in ({">=", "<"}, {"=="})
    try:
        version = metadata.version(requirement.name)
    except metadata.PackageNotFoundError:
        pytest.skip(f"{requirement.name} is not installed")
    assert requirement.specifier.contains(version, prereleases=True)
