"""Spherical hashing the plain way: rows in both of two spheres, counted one by one. Tests only."""

import math


def overlap(rows, spheres, i, j):
    """Rows that lie in both of two spheres; a sphere is (center, radius)."""
    return sum(
        all(math.dist(row, center) < radius for center, radius in (spheres[i], spheres[j]))
        for row in rows
    )


def moved(centers, overlaps, n_rows):
    """Centers after one round: half of each pair's relative excess, along the line between them."""
    n_spheres, quarter = len(centers), n_rows / 4
    result = []
    for i in range(n_spheres):
        force = [0.0] * len(centers[i])
        for j in range(n_spheres):
            if i != j:
                push = 0.5 * (overlaps[i][j] - quarter) / quarter
                for k in range(len(force)):
                    force[k] += push * (centers[i][k] - centers[j][k])
        result.append([c + f / n_spheres for c, f in zip(centers[i], force, strict=True)])
    return result
