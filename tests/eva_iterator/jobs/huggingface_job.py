# mypy: ignore-errors
# (a script as users write it: untyped, and it prints)
"""A Hugging Face Trainer with Eva's callback as its one changed line (and one to resume)."""

import json
import os
import sys
import time
from pathlib import Path

import torch
from eva_iterator.integrations.huggingface import EvaCallback
from transformers import Trainer, TrainingArguments

STEPS = int(sys.argv[1])
job_dir = Path(os.environ["EVA_JOB_DIR"])
log = (job_dir / "steps.log").open("a")


class Squares(torch.utils.data.Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        return {"index": index, "x": torch.tensor([index / 64])}


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(1, 1)

    def forward(self, index, x):
        print(*index.tolist(), file=log, flush=True)
        time.sleep(0.01)
        return {"loss": ((self.layer(x) - x * x) ** 2).mean()}


torch.manual_seed(0)
model = Model()
arguments = TrainingArguments(
    output_dir=str(job_dir / "output"),
    max_steps=STEPS,
    per_device_train_batch_size=4,
    save_strategy="no",
    report_to=[],
    disable_tqdm=True,
    use_cpu=True,
    remove_unused_columns=False,
)
trainer = Trainer(model=model, args=arguments, train_dataset=Squares(), callbacks=[EvaCallback()])
trainer.train(resume_from_checkpoint=EvaCallback.restore_path())
weights = [value.hex() for tensor in model.parameters() for value in tensor.flatten().tolist()]
(job_dir / "weights.json").write_text(json.dumps(weights))
