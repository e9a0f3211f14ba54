"""The openai client reads what `capstan serve` answers: completions whole and streamed, embeddings, models, errors.

    python tests/interop/serve_client.py

Needs the Python package openai and a built program with the server; says so and skips otherwise.
"""

import subprocess

from sample_run import PROGRAM, SampleRun, require, serving

openai = require("openai")


def main():
    run = SampleRun()
    run.train()
    process, address = serving(run.place / "runs" / "sample")
    try:
        client = openai.OpenAI(base_url=address + "v1", api_key="-", max_retries=0)
        model = client.models.list().data[0].id
        assert model == "sample", model
        knobs = {"model": model, "prompt": "the tape", "max_tokens": 12, "seed": 3}
        whole = client.completions.create(**knobs, n=2)
        assert [choice.index for choice in whole.choices] == [0, 1]
        assert whole.usage.completion_tokens == 24
        chunks = list(client.completions.create(**knobs, stream=True, stream_options={"include_usage": True}))
        assert "".join(chunk.choices[0].text for chunk in chunks if chunk.choices) == whole.choices[0].text
        assert chunks[-1].usage.completion_tokens == 12
        command = [str(PROGRAM), "generate", str(run.place / "runs" / "sample"), "--prompt", "the tape", "-n", "12", "--seed", "3"]
        written = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        assert written == "the tape" + whole.choices[0].text + "\n", written
        scored = client.completions.create(**knobs, echo=True, logprobs=1).choices[0].logprobs
        assert len(scored.tokens) == len("the tape") + 12 and scored.text_offset[3] == 3
        vectors = [client.embeddings.create(model=model, input="the tape", encoding_format=form).data[0].embedding
                   for form in ("float", "base64")]
        assert vectors[0] == vectors[1] or isinstance(vectors[1], str)
        assert len(client.embeddings.create(model=model, input=["a", "b"]).data) == 2  # the client asks for base64
        for wrong, kind in (({"max_tokens": -1}, openai.BadRequestError), ({"model": "gpt"}, openai.NotFoundError)):
            try:
                client.completions.create(**(knobs | wrong))
            except kind:
                continue
            raise AssertionError(f"{wrong} was taken")
        print("the openai client reads all answers")
    finally:
        process.terminate()
        assert process.wait(timeout=10) == 0


if __name__ == "__main__":
    main()
