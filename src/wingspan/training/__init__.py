"""From a recipe and documents to a trained model."""
