from ipu_results.doors.cli import main

main(prog_name="ipu-results")
