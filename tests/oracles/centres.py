"""Losses of the methods that learn from classes, one number after another, in plain Python."""

import math
from itertools import combinations, combinations_with_replacement, product


def hamming(one, other):
    return sum(int(a != b) for a, b in zip(one, other, strict=True))


def distances(codes):
    return [hamming(one, other) for one, other in combinations(codes, 2)]


def best_least_distance(n, n_bits):
    """The least distance of the best of all sets of n codes. Exponential time: tests only."""
    codes = list(product((-1, 1), repeat=n_bits))
    return max(min(distances(chosen)) for chosen in combinations_with_replacement(codes, n))


def ball(n_bits, radius):
    """Codes within a distance of one code."""
    zero = (0,) * n_bits
    return sum(hamming(code, zero) <= radius for code in product((0, 1), repeat=n_bits))


def majority(tags, centres, ties):
    """The code that most of the centres of the tags agree on, bit by bit; None without tags."""
    chosen = [centre for centre, tag in zip(centres, tags, strict=True) if tag]
    if not chosen:
        return None
    code = []
    for k, tie in enumerate(ties):
        n_plus = sum(centre[k] > 0 for centre in chosen)
        n_minus = len(chosen) - n_plus
        code.append(tie if n_plus == n_minus else 1 if n_plus > n_minus else -1)
    return code


def central_loss(logits, targets, alpha, quantisation):
    total, n = 0.0, 0
    for row, target in zip(logits, targets, strict=True):
        if target is None:
            continue
        n += 1
        for f, t in zip(row, target, strict=True):
            p = (math.tanh(alpha * f) + 1) / 2
            total -= math.log(p if t > 0 else 1 - p) / len(row)
            soft = abs(2 * p - 1) - 1
            total += quantisation * math.log(math.cosh(soft)) / len(row)
    return total / n


def polarisation_loss(logits, targets, margin):
    total, n = 0.0, 0
    for row, target in zip(logits, targets, strict=True):
        if target is None:
            continue
        n += 1
        total += sum(max(margin - f * t, 0) for f, t in zip(row, target, strict=True)) / len(row)
    return total / n


def cosine_loss(logits, own, centres, margin, scale):
    """`own` lists the classes or tags of each row; a row without any does not count."""
    total, n = 0.0, 0
    for row, mine in zip(logits, own, strict=True):
        if not mine:
            continue
        n += 1
        norm = math.sqrt(sum(f * f for f in row)) * math.sqrt(len(row))
        cosines = [
            sum(f * o for f, o in zip(row, centre, strict=True)) / norm for centre in centres
        ]
        scores = [scale * (c - margin * (k in mine)) for k, c in enumerate(cosines)]
        whole = math.log(sum(math.exp(score) for score in scores))
        total += sum(whole - scores[k] for k in mine) / len(mine)
    return total / n


def greedy_loss(logits, own, weight, bias, penalty, *, is_tags):
    """Softmax cross-entropy of one class a row, or the mean logistic loss of all tags."""
    total, gaps = 0.0, 0.0
    for row, mine in zip(logits, own, strict=True):
        signs = [1 if f > 0 else -1 for f in row]
        gaps += sum(abs(f - s) ** 3 for f, s in zip(row, signs, strict=True)) / len(row)
        scores = [
            b + sum(w * s for w, s in zip(line, signs, strict=True))
            for line, b in zip(weight, bias, strict=True)
        ]
        if is_tags:
            chances = [1 / (1 + math.exp(-score)) for score in scores]
            right = [p if k in mine else 1 - p for k, p in enumerate(chances)]
            total -= sum(map(math.log, right)) / len(scores)
        else:
            (k,) = mine
            total += math.log(sum(map(math.exp, scores))) - scores[k]
    return (total + penalty * gaps) / len(logits)
