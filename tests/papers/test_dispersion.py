"""Ding, Li and Li, mLGAP, Table 1 and Fig. 8: dispersion raises mLGAP and code use over DSH."""

from functools import cache

import pytest

from rankbits import affinity, datasets, evaluate, methods, metrics


@cache
def measured(name, seed=0, **params):
    """mLGAP@2 of the queries of digits at 12 bits, and the use of codes in their database."""
    data = datasets.digits()
    hasher = methods.get(name, n_bits=12, n_threads=1, random_state=seed, **params)
    hasher.fit(data.database_x, data.database_y)
    queries, database = hasher.encode(data.query_x), hasher.encode(data.database_x)
    relevant = affinity.classes(data.query_y, data.database_y)
    mean = evaluate(queries, database, relevant, "LGAP@r2").mean["LGAP@r2"]
    return mean, metrics.code_use(database)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_dispersed_dsh_raises_mlgap_and_code_use_over_dsh(seed):
    plain, plain_use = measured("dsh", seed, posterior=0, epochs=60)
    spread, use = measured("dsh-dispersed", seed, posterior=0, epochs=60)
    assert spread > plain + 0.003
    assert use.n_distinct > 1.5 * plain_use.n_distinct
    assert use.entropy_bits > plain_use.entropy_bits + 1
    assert use.collision_rate < plain_use.collision_rate


@pytest.mark.parametrize(
    ("kind", "weight", "posterior"),
    [("collisions", 3.0, 0), ("correlation", 1.0, 0), ("collisions", 3.0, 3)],
)
def test_dispersion_spreads_the_codes_of_talr_with_and_without_a_posterior(kind, weight, posterior):
    settings = {"posterior": posterior, "epochs": 8}
    _, plain = measured("talr-ap", **settings)
    _, use = measured("talr-ap", dispersion=weight, dispersion_kind=kind, **settings)
    assert use.entropy_bits > plain.entropy_bits + 0.5
    assert use.n_distinct > 1.1 * plain.n_distinct
