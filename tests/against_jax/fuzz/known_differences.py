"""Drawn programs that differ from jax 0.10.2, by seed, and why the difference stays."""

# What has a cause that others share is in shrinking.py, as a text of jax's or of the program.
SEEDS = {
    532435: (
        "counts equations: the body of a scan whose results have no tangents keeps what nothing "
        "reads, which XLA drops; jax drops it when it linearizes, and moves what depends on no "
        "element of the loop in front of it"
    ),
    621132: (
        "counts equations: an operand mapped along axis 1 stays so among operands that are not "
        "mapped, and jax moves its axis to the front at once; that moves fewer arrays in most "
        "programs, and more in this one, whose inner function reads the array three times"
    ),
    800168: (
        "counts equations: a checkpoint in a function under custom_jvp, none of whose values has a "
        "tangent, stays a checkpoint, as everywhere else, for derivatives taken around; jax puts "
        "its equations in its place there, and only there, and leaves out those that nothing reads"
    ),
}
