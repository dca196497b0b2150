"""What readers share: the job, prompts, merging, selection, and the read around them."""
