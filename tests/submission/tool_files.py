"""Files in the form of those that other tools write, with figures of our own, and how a test reads
one.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ipu_results.errors import SubmissionError
from ipu_results.submission.adapters import ReadFile, read_figures

BYTEMLPERF = """{
    "Model": "RESNET50-TORCH-FP32",
    "Backend": "IPU",
    "Host Info": "A processor",
    "Dataset": "OPEN_IMAGENET",
    "Device Count": 2,
    "Graph Compile": {"Compile Duration": 12.5, "Compile Precision": "FP16", "Optimizations": {}},
    "Execution Date": "2026-01-02 03:04:05",
    "Accuracy": {"Data Percent": 100, "Top-1": 0.50010, "Mean Diff": 3e-05, "Max Rel-Diff": NaN},
    "Performance": [
        {"BS": 8, "QPS": 123456.70, "AVG Latency": 1.250, "P99 Latency": 2.10},
        {"BS": 16, "QPS": 1300, "AVG_Latency": 2.5, "P99_Latency": 3}
    ]
}
"""
JUBE_CSV = """JobID,System,Version,Queue,Model,ModelSize,Dataset,Nodes,Devices,GlobalBatchSize,\
Time/iteration(s),Tokens/second
11,GC200,2024.01,dc,GPT,117M,Synthetic,1,4,512,4.00,128.00
12,H100,2024.01,dc,GPT,800M,OSCAR,1,4,512,4.00,131072.10
"""
JUBE_PRETTY = """result:
| System | Devices | GlobalBatchSize | Images/second | Energy/Device(Wh) |
|--------|---------|-----------------|---------------|-------------------|
|  GC200 |       2 |              32 |        712.50 |             1.250 |
|  MI250 |       8 |              64 |               |             2.500 |
"""
POPRT_ASYNC = """Run batch size 4:
PopRT conversion: 100%|####| 5/5 [00:02<00:00]
Asyncronous avg Session Time : 2.000ms
Tput: 2000.1234567890124
Run batch size 9:
Tput (800 * 800 / time_per_image): 777.5
"""
POPRT_RECORD = (
    "INFO:\"{'accuracy/mae': 0.001, 'batch_size': 6, 'compile_cost': 3.5, 'iteration': 1000,"
    " 'latency_max': 0.0070, 'latency_mean': 0.0050, 'latency_median': 0.0049, 'latency_min':"
    " 0.0010, 'log_type': 'BenchmarkOutput', 'onnx_file': 'm.onnx', 'precision': 'fp16', 'size':"
    " [6, 128], 'total_time_costs': 1.0, 'tput': 1201.50}\"\n"
)
POPRT_PACKED = """INFO:Pack bert_base, Batch Size: 16 Throughput: 8000.5 samples/s, Latency : 0.1250 ms
[Pack Online (first_fit)] Throughput: 900.25 samples/s, Latency: 1.1 ms
"""
CNN_INFERENCE = """[poptorch:cpp] a line of PopTorch
[instance1/2] Throughput: 90.5 imgs/sec; Latency range: 1.0..2.0 ms
resnet50 results:

\tmicro_batch_size: 4

\tdata_mode: real

\tnum_ipus: 2

\tthroughput: 1000.250 samples/sec (mean) (min: 990.0, max: 1010.0, std: 5.5)

\tlatency avg: 1.750 ms (mean) (min: 1.5, max: 2.25)
"""
GPT2_TRAINING = """step 0 of epoch 0, loss: 9.5, acc: 0.1, lr: 0.001, throughput: 10.50 samples/sec
step 1 of epoch 0, loss: 9.1, acc: 0.1, lr: 0.001, throughput: 11.70 samples/sec
"""
CLIP_TRAINING = """Epoch: 1.00/2 Step: 3/9 Lr: 0.001000 loss: 0.500 throughput: 70.00 samples/sec
---------- Training Metrics -----------
global_batch_size: 2048
device_iterations: 1
throughput: 64.500000 samples/sec.
"""
SUMMARY = """================================================
MLPerf Results Summary
================================================
SUT name : a system
Scenario : {scenario}
Mode     : PerformanceOnly
{headline}
Result is : VALID
  Min duration satisfied : Yes

================================================
Additional Stats
================================================
{rate}

Min latency (ns)                : 900
Max latency (ns)                : 5000
Mean latency (ns)               : 1500
50.00 percentile latency (ns)   : 1400
90.00 percentile latency (ns)   : 2000
99.00 percentile latency (ns)   : 4000

================================================
Test Parameters Used
================================================
samples_per_query : {samples}
target_qps : 700

No warnings encountered during test.

No errors encountered during test.
"""
SERVER = SUMMARY.format(
    scenario="Server",
    headline="Scheduled samples per second : 640.50",
    rate="Completed samples per second    : 639.25",
    samples=1,
)
SINGLE = SUMMARY.format(
    scenario="SingleStream",
    headline="90th percentile latency (ns) : 2000",
    rate="QPS w/ loadgen overhead         : 600.10\nQPS w/o loadgen overhead        : 610.00",
    samples=1,
)
OFFLINE = SUMMARY.format(
    scenario="Offline", headline="Samples per second: 26.9000", rate="", samples=24576
)


def mllog(key: str, value: object, time_ms: int = 5, **metadata: object) -> str:
    return (
        ":::MLLOG "
        + json.dumps({"key": key, "value": value, "time_ms": time_ms, "metadata": metadata})
        + "\n"
    )


DETAIL = "".join(
    mllog(key, value, is_error=False)
    for key, value in {
        "loadgen_version": "5.0",
        "effective_scenario": "MultiStream",
        "effective_test_mode": "PerformanceOnly",
        "effective_samples_per_query": 8,
        "result_validity": "VALID",
        "result_mean_query_latency_ns": 8000,
        "result_99.00_percentile_per_query_latency_ns": 9000,
        "result_mean_latency_ns": 7000,
    }.items()
)
TRAINING = (
    mllog("submission_benchmark", "resnet")
    + mllog("submission_platform", "a pod")
    + mllog("global_batch_size", 64)
    + mllog("seed", 7)
    + mllog("run_start", None, 1700000000001)
    + mllog("run_stop", None, 1700000100234, status="success")
)
LATENCY = {
    "unit": "s",
    "values": [0.5],
    "count": 1,
    "mean": 0.5,
    "p50": 0.5,
    "p90": 0.75,
    "p99": 0.8,
    "stdev": 0.1,
}
OPTIMUM: dict[str, Any] = {
    "config": {
        "backend": {
            "name": "pytorch",
            "version": "2.5",
            "model": "bert",
            "device": "cuda",
            "device_ids": "0",
        },
        "scenario": {"name": "inference", "input_shapes": {"batch_size": 4, "sequence_length": 16}},
        "environment": {"cpu": "A processor", "gpu": ["A chip"]},
    },
    "report": {
        "load_model": {"latency": LATENCY},
        "forward": {"latency": LATENCY, "throughput": {"unit": "samples/s", "value": 8.0}},
        "generate": {"latency": LATENCY, "throughput": {"unit": "samples/s", "value": 792.0}},
    },
}
TEMPLATE = """model,task,batch_size,metric,unit,value,place
my network,inference,4,throughput,images/s,"1,234.50",table 3
my network,inference,4,latency,ms,0.5,
"""
TRTEXEC = """\
&&&& RUNNING TensorRT.trtexec [TensorRT v8601] # trtexec --onnx=resnet50.onnx --shapes=input:{batch}x3x224x224 --fp16
[07/20/2026-12:17:40] [I] Selected Device: NVIDIA A100-SXM4-40GB
[07/20/2026-12:17:40] [I] TensorRT version: 8.6.1
[07/20/2026-12:17:47] [I] === Performance summary ===
[07/20/2026-12:17:47] [I] Throughput: 258.892 qps
[07/20/2026-12:17:47] [I] Latency: min = 1.87 ms, max = 6.78 ms, mean = 4.0024 ms, median = 4.3 ms
[07/20/2026-12:17:47] [I] GPU Compute Time: min = 1.71 ms, max = 6.48 ms, mean = 3.82667 ms
"""
BENCHMARK_APP = """\
[ INFO ] Model batch size: 8
[Step 10/11] Measuring performance (Start inference asynchronously, 6 inference requests, limits: 15000 ms duration)
[ INFO ] Execution Devices:['CPU']
[ INFO ] Latency:
[ INFO ]    Median:        17.50 ms
[ INFO ]    Average:       17.72 ms
[ INFO ]    Max:           31850.26 us
[ INFO ] Throughput:   2655.95 FPS
"""
VLLM_SERVE: dict[str, Any] = {
    **{
        "date": "20261127-110000",
        "backend": "openai",
        "model_id": "an/opt-125m",
        "tokenizer_id": "an/opt-125m",
    },
    **{
        "num_prompts": 64,
        "request_rate": "inf",
        "burstiness": 1.0,
        "max_concurrency": 8,
        "duration": 10.0,
    },
    **{"completed": 60, "failed": 4, "total_input_tokens": 1920, "total_output_tokens": 7680},
    **{"request_throughput": 6.0, "request_goodput": None, "output_throughput": 768.0},
    **{
        "total_token_throughput": 960.0,
        "mean_ttft_ms": 31.5,
        "mean_tpot_ms": 8.1,
        "mean_e2el_ms": 1061.25,
    },
    **{"median_e2el_ms": 1049.5, "p99_e2el_ms": 1204.75},
}
VLLM_THROUGHPUT = json.dumps(
    {
        **{"elapsed_time": 20.0, "num_requests": 100, "total_num_tokens": 16000},
        **{"requests_per_second": 5.0, "tokens_per_second": 800.0},
    }
)
VLLM_LATENCY = json.dumps(
    {
        **{"avg_latency": 1.0625, "std_latency": 0.03125, "latencies": [1.0, 1.125]},
        "percentiles": {"10": 1.0, "50": 1.0625, "90": 1.1, "99": 1.12},
    }
)
TRAINER = '{"train_samples_per_second": 41.20, "eval_samples_per_second": 97.1, "epoch": 1.0}'

FILES = {
    "bytemlperf": BYTEMLPERF,
    "jube-caraml": JUBE_CSV,
    "mlperf-loadgen-summary": SERVER,
    "mlperf-loadgen-detail": DETAIL,
    "mlperf-training-log": TRAINING,
    "optimum-benchmark": json.dumps(OPTIMUM, indent=4),
    "poprt": POPRT_RECORD,
    "poptorch": CNN_INFERENCE,
    "trtexec": TRTEXEC.format(batch=1),
    "benchmark_app": BENCHMARK_APP,
    "trainer": TRAINER,
    "vllm": json.dumps(VLLM_SERVE),
    "csv-template": TEMPLATE,
}


def read(folder: Path, text: str | bytes, name: str = "file.txt") -> ReadFile:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_figures(path)


def select(result: ReadFile, *columns: str) -> list[tuple[str, ...]]:
    return [tuple(figure[column] for column in columns) for figure in result.figures]


def assert_refused(folder: Path, text: str | bytes, *parts: str) -> None:
    with pytest.raises(SubmissionError) as caught:
        read(folder, text)
    assert caught.value.document == str(folder / "file.txt")
    assert all(part in str(caught.value) for part in parts), caught.value
