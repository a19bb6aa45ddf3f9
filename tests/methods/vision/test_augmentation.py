"""Small changes of pictures."""

import numpy as np
import torch

from rankbits.methods.vision import augmentation


def test_images_are_mirrored_whole_and_moved_by_whole_pixels(rng):
    images = torch.arange(1, 1 + 6 * 5 * 4 * 2).reshape(6, 5, 4, 2)
    mirrored = augmentation.move_images(images, True, 0, rng)
    kinds = {
        "as it was" if torch.equal(a, b) else "mirrored" if torch.equal(a, b.flip(1)) else "else"
        for a, b in zip(mirrored, images, strict=True)
    }
    assert kinds == {"as it was", "mirrored"}
    for moved, image in zip(augmentation.move_images(images, False, 2, rng), images, strict=True):
        assert any(torch.equal(moved, shifted(image, y, x)) for y in SHIFTS for x in SHIFTS)


SHIFTS = range(-2, 3)


def shifted(image, y, x):
    """The image with its mirror images around it, read from (y, x) on."""
    around = np.pad(image.numpy(), ((2, 2), (2, 2), (0, 0)), mode="reflect")
    height, width, _ = image.shape
    return torch.from_numpy(around[2 + y :, 2 + x :][:height, :width].copy())
