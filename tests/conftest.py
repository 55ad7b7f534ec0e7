import hypothesis
import torch

# tests run beside each other on few cores; one thread each is quicker, and sums come out the same every time
torch.set_num_threads(1)

hypothesis.settings.register_profile("shared-machine", deadline=None)
hypothesis.settings.load_profile("shared-machine")
