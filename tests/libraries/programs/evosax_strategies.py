"""evosax: evolution strategies on a small function, each for a few generations."""

import jax
import jax.numpy as jnp
from evosax.algorithms import CMA_ES, PSO, DifferentialEvolution, Open_ES, SimpleGA


def fitness_of(x):
    return ((x - jnp.array([1.0, -2.0, 0.5])) ** 2).sum() + jnp.sin(3 * x[0])


def run(name, strategy, *population):
    key = jax.random.key(0)
    params = strategy.default_params
    state = strategy.init(key, *population, params)

    @jax.jit
    def generation(state, key):
        ask, tell = jax.random.split(key)
        members, state = strategy.ask(ask, state, params)
        fitness = jax.vmap(fitness_of)(members)
        state, metrics = strategy.tell(tell, members, fitness, state, params)
        return state, metrics["best_fitness"]

    state, best = jax.lax.scan(generation, state, jax.random.split(key, 8))
    print(name, best)


start = jnp.zeros(3)
run("CMA-ES", CMA_ES(population_size=8, solution=start), start)
run("OpenES", Open_ES(population_size=8, solution=start), start)
members = jax.random.normal(jax.random.key(1), (8, 3))
first = jax.vmap(fitness_of)(members)
run("DE", DifferentialEvolution(population_size=8, solution=start), members, first)
run("PSO", PSO(population_size=8, solution=start), members, first)
run("GA", SimpleGA(population_size=8, solution=start), members, first)
