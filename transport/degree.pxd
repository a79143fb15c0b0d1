"""What `degree.py` has, for compiled modules; TOTAL compares both when it is imported."""

cdef enum:
    NUMBER_MAX = 253
    MAJORITY = 254
    ALL = 255
    NO_FLAGS = 0xFF     # beside a degree: what is left is the degree without its flag
    AVAILABLE = 256
