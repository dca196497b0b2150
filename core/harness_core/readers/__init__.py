"""One module per reader, and nothing else: the file name is the reader's name."""
