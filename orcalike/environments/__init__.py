"""Launchers that are not orcalike's: how a process that one of them has started finds its group.

Each has a file here, with a function that reads its variables and gives a `World` or None. Launchers can
stand within each other, such as torchrun or mpiexec in a Slurm job, and each process inherits the variables
of all of them: so the innermost is asked first (`finding`). What a world lacks, where the others listen, is
found by `meeting`; then the process is a rank like one that `orcalike run` has started.
"""
