"""From noisy measurements to answers: estimators, all of which are post-processing and cost no privacy."""
