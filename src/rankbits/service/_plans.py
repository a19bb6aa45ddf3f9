"""How a request is searched: by what it says, and else by the plan of the server."""

from rankbits.index import SearchPlan
from rankbits.index.plan import NO_RERANK
from rankbits.service._bodies import Given
from rankbits.service._parts import Parts
from rankbits.service._problems import RequestProblem

WEIGHTED_BITS = "weighted_bits"


def settle(parts: Parts, given: Given) -> None:
    """Fill in what a request leaves open, and refuse fields that contradict each other.

    Codes as queries, a radius and complete ties ask for bits, whatever the plan; each field that is
    given stands in place of what the plan says.
    """
    is_weighted = given["rerank"] == WEIGHTED_BITS  # which no plan has: its weights are given
    plan = _plan_for(parts, given).changed(
        by=given["by"],
        rerank=NO_RERANK if is_weighted else given["rerank"],
        similarity=given["similarity"],
    )
    given["rerank"] = WEIGHTED_BITS if is_weighted else plan.rerank
    if given["pool"] is None and plan.pool is not None:
        given["pool"] = max(plan.pool, given["k"] or 1)
    given["by"], given["similarity"] = plan.by, plan.similarity
    _require_consistent(given)


def _plan_for(parts: Parts, given: Given) -> SearchPlan:
    """The plan of the server, as far as it can be for such queries."""
    plan = parts.plan
    if given["radius"] is not None or given["ties"] == "complete" or given["codes"] is not None:
        return plan.for_ties()
    has_numbers = given["ids"] is None or parts.vectors is not None
    return plan if has_numbers else plan.for_ties()


def _require_consistent(given: Given) -> None:
    by, rerank = given["by"], given["rerank"]
    if given["radius"] is not None and (by == "weights" or rerank is not None):
        raise RequestProblem("invalid", "radius must come without by=weights and rerank")
    if by == "weights" and given["ties"] == "complete":
        raise RequestProblem("invalid", "by=weights must come without ties=complete")
    if by == "weights" and rerank in ("weights", WEIGHTED_BITS):
        raise RequestProblem("invalid", f"rerank={rerank} must come with by=bits")
    if (rerank == WEIGHTED_BITS) != (given["weights"] is not None):
        raise RequestProblem("invalid", "weights and rerank=weighted_bits must come together")
    if given["pool"] is not None and rerank is None:
        raise RequestProblem("invalid", "pool must come with rerank")
    if given["ties"] == "complete" and given["k"] is None and given["radius"] is not None:
        raise RequestProblem(
            "invalid", "ties=complete must come with k: a radius alone has all ties"
        )
