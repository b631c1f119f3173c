def compiler_options(program):
    return None
