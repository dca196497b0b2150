"""The built-in segmenters: each module is one, and its name is the module's."""
