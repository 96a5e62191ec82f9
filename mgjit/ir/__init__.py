"""The Program: loop nests of scalar statements over arrays, its printer, verifier and interpreter."""
