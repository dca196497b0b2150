"""Whether what a model wrote is what it read: quotations, citations, premises."""
