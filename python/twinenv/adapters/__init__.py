"""Views of an environment in the dialects of other libraries, each imported when it is used."""
