"""How a request is searched: by what it says, and else by the plan of the server."""

from rankbits.index import SearchPlan
from rankbits.service._bodies import Given
from rankbits.service._parts import Parts
from rankbits.service._problems import RequestProblem

_NONE = "none"  # asks for no re-ranking where the plan has one


def settle(parts: Parts, given: Given) -> None:
    """Fill in what a request leaves open, and refuse fields that contradict each other.

    Codes as queries, a radius and complete ties ask for bits, whatever the plan; each field that is
    given stands in place of what the plan says.
    """
    plan = _plan_for(parts, given)
    has_own = given["rerank"] is not None
    given["by"] = given["by"] or plan.by
    given["rerank"] = given["rerank"] or plan.rerank
    if given["rerank"] == _NONE:
        given["rerank"] = None
    if given["pool"] is None and given["rerank"] is not None and not has_own and plan.pool:
        given["pool"] = max(plan.pool, given["k"] or 1)
    given["similarity"] = given["similarity"] or plan.similarity
    _require_consistent(given)


def _plan_for(parts: Parts, given: Given) -> SearchPlan:
    """The plan of the server, as far as it can be for such queries."""
    plan = parts.plan
    if given["radius"] is not None or given["ties"] == "complete" or given["codes"] is not None:
        return SearchPlan(similarity=plan.similarity)
    if given["ids"] is not None and parts.vectors is None:
        return SearchPlan(similarity=plan.similarity)
    return plan


def _require_consistent(given: Given) -> None:
    by, rerank = given["by"], given["rerank"]
    if given["radius"] is not None and (by == "weights" or rerank is not None):
        raise RequestProblem("invalid", "radius must come without by=weights and rerank")
    if by == "weights" and given["ties"] == "complete":
        raise RequestProblem("invalid", "by=weights must come without ties=complete")
    if by == "weights" and rerank in ("weights", "weighted_bits"):
        raise RequestProblem("invalid", f"rerank={rerank} must come with by=bits")
    if (rerank == "weighted_bits") != (given["weights"] is not None):
        raise RequestProblem("invalid", "weights and rerank=weighted_bits must come together")
    if given["pool"] is not None and rerank is None:
        raise RequestProblem("invalid", "pool must come with rerank")
    if given["ties"] == "complete" and given["k"] is None and given["radius"] is not None:
        raise RequestProblem(
            "invalid", "ties=complete must come with k: a radius alone has all ties"
        )
