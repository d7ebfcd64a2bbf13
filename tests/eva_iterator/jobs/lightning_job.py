# mypy: ignore-errors
# (a script as users write it: untyped, and it prints)
"""A Lightning Trainer with Eva's callback as its one changed line (and one to resume)."""

import json
import os
import sys
import time
from pathlib import Path

import lightning
import torch
from eva_iterator.integrations.lightning import EvaCallback
from torchdata.stateful_dataloader import StatefulDataLoader

STEPS = int(sys.argv[1])
job_dir = Path(os.environ["EVA_JOB_DIR"])
log = (job_dir / "steps.log").open("a")


class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(1, 1)

    def training_step(self, batch, batch_idx):
        print(self.current_epoch, *batch.flatten().tolist(), file=log, flush=True)
        time.sleep(0.01)
        return ((self.layer(batch) - batch * batch) ** 2).mean()

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters())


torch.manual_seed(0)
model = Model()
loader = StatefulDataLoader([torch.tensor([index / 64]) for index in range(64)], batch_size=4)
trainer = lightning.Trainer(
    max_steps=STEPS,
    accelerator="cpu",
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
    callbacks=[EvaCallback()],
)
trainer.fit(model, loader, ckpt_path=EvaCallback.restore_path())
weights = [value.hex() for tensor in model.parameters() for value in tensor.flatten().tolist()]
(job_dir / "weights.json").write_text(json.dumps(weights))
