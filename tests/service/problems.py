"""Requests of tests, and what every error of the server must look like."""

import httpx

PROBLEM = "application/problem+json"


def post(url, path, body, **headers):
    """A POST of JSON."""
    return httpx.post(url + path, json=body, headers=headers, timeout=30)


def assert_problem(answer, status, *words):
    """Problem details of RFC 9457, with these words in their detail."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == PROBLEM
    problem = answer.json()
    assert problem["status"] == status
    assert problem["type"].startswith("urn:rankbits:problem:")
    assert problem["title"]
    for word in words:
        assert word in problem["detail"], problem
    if status in (429, 503):
        assert int(answer.headers["retry-after"]) >= 1
    return problem
