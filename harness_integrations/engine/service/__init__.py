"""The HTTP service: ``POST /namespaces/{namespace}/collections/{collection}:answer`` and around it.

What the contract fixes is in ``harness_core.collections.contract``; the other endpoints are ours.
"""
