"""Files that are read and written safely, and temporary directories that never stay behind."""
