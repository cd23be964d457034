"""One kind of data source per file: list its partitions, read the columns of one."""
