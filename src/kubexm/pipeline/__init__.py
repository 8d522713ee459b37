"""Operations on a cluster from end to end: modules, and who waits for whom."""
