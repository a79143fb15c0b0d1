class Interests:
    count: int
