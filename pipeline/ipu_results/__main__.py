from ipu_results.cli import main

main(prog_name="ipu-results")
